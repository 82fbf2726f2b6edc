"""Module efs_access_point against moto: its whole life, each step in check mode first, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.aws.conftest import Site

# A server is asked, and asked again.
pytestmark = pytest.mark.slow

MODULE = "efs_access_point"
OWNER = {"owner_uid": 65532, "owner_gid": 65532, "permissions": "0750"}
DATASETS: dict[str, Any] = {
    "name": "datasets",
    "path": "/datasets",
    "user": {"uid": 65532, "gid": 65532, "secondary_gids": [7, 5]},
    "creation": OWNER,
    "tags": {"trainyard": "mine"},
}
TRAINING: dict[str, Any] = {"name": "training", "path": "/training"}


@pytest.fixture
def its_id(site: Site) -> str:
    return str(site.efs.create_file_system(CreationToken="mine")["FileSystemId"])


def there(site: Site, its_id: str) -> list[dict[str, Any]]:
    return site.efs.describe_access_points(FileSystemId=its_id)["AccessPoints"]


def test_whole_life(site: Site, its_id: str) -> None:
    made = site.settles(MODULE, file_system_id=its_id, access_points=[DATASETS, TRAINING])
    assert made["steps"] == [
        "Create the access point datasets on /datasets", "Create the access point training on /training"
    ]  # fmt: skip
    found = {each["Name"]: each for each in there(site, its_id)}
    assert {name: each["AccessPointId"] for name, each in found.items()} == {
        each["name"]: each["id"] for each in made["access_points"]
    }
    assert found["datasets"]["PosixUser"] == {"Uid": 65532, "Gid": 65532, "SecondaryGids": [5, 7]}
    directory = {"OwnerUid": 65532, "OwnerGid": 65532, "Permissions": "0750"}
    assert found["datasets"]["RootDirectory"] == {"Path": "/datasets", "CreationInfo": directory}
    assert "PosixUser" not in found["training"]

    tagged = {**DATASETS, "tags": {"left": "1"}}
    site.settles(MODULE, file_system_id=its_id, access_points=[tagged])
    changed = site.settles(MODULE, file_system_id=its_id, access_points=[tagged], purge_tags=True)
    assert changed["steps"] == ["Remove tags of the access point datasets: trainyard"]
    assert {each["Name"] for each in there(site, its_id)} == {"datasets", "training"}, "nothing is deleted unasked"

    left = site.settles(MODULE, file_system_id=its_id, access_points=[DATASETS], purge=True)
    assert left["steps"][-1].startswith("Delete the access point training (fsap-")
    gone = site.both(MODULE, state="absent", file_system_id=its_id, confirm=its_id)
    assert len(gone["steps"]) == 1
    assert site.both(MODULE, state="absent", file_system_id=its_id, confirm=its_id)["changed"] is False
    assert there(site, its_id) == []


def test_states_on_the_way_are_waited_for(site: Site, its_id: str) -> None:
    gaps = site.proxy.gaps
    gaps.hidden, gaps.creating, gaps.deleting = 2, 2, 2
    made = site.both(MODULE, file_system_id=its_id, access_points=[DATASETS, TRAINING])
    assert {each["state"] for each in made["access_points"]} == {"available"}
    assert site.both(MODULE, file_system_id=its_id, access_points=[TRAINING], purge=True)["changed"] is True
    assert [each["Name"] for each in there(site, its_id)] == ["training"]


def test_lost_answers_make_nothing_twice(site: Site, its_id: str) -> None:
    site.proxy.lose("efs:CreateAccessPoint", times=2)
    site.proxy.refuse("efs:CreateAccessPoint", "ThrottlingException")
    site.settles(MODULE, file_system_id=its_id, access_points=[DATASETS, TRAINING])
    assert sorted(each["Name"] for each in there(site, its_id)) == ["datasets", "training"]


def test_more_than_a_page_and_one_question_for_each(site: Site, its_id: str) -> None:
    site.proxy.gaps.page = 2
    points = [{"name": f"use{number}", "path": f"/use{number}"} for number in range(5)]
    site.settles(MODULE, file_system_id=its_id, access_points=points)
    site.proxy.calls.clear()
    assert site.run(MODULE, file_system_id=its_id, access_points=points)["changed"] is False
    assert site.proxy.names() == ["efs:DescribeAccessPoints"] * 3
    assert len(site.run(MODULE, state="absent", file_system_id=its_id, confirm=its_id)["steps"]) == 5
    assert there(site, its_id) == []


def test_one_made_elsewhere_is_left_alone(site: Site, its_id: str) -> None:
    tags = [{"Key": "Name", "Value": "datasets"}]
    site.efs.create_access_point(FileSystemId=its_id, ClientToken="theirs", Tags=tags)
    site.settles(MODULE, file_system_id=its_id, access_points=[DATASETS])
    assert len(there(site, its_id)) == 2


def test_what_aws_cannot_change_is_refused_with_all_of_it(site: Site, its_id: str) -> None:
    site.run(MODULE, file_system_id=its_id, access_points=[DATASETS])
    other = {**DATASETS, "path": "/other", "creation": {**OWNER, "permissions": "0770"}}
    refused = site.run(MODULE, file_system_id=its_id, access_points=[TRAINING, other])
    assert [each.split()[0] for each in refused["differing"]] == ["path", "creation"]
    assert "path is /datasets, not /other" in refused["msg"] and refused["changed"] is False
    assert len(there(site, its_id)) == 1
    same = {**DATASETS, "creation": {**OWNER, "permissions": "750"}}
    assert site.both(MODULE, file_system_id=its_id, access_points=[same])["changed"] is False


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ({"path": "datasets"}, "new cannot have the path datasets: not absolute"),
        ({"path": "/a//b"}, "a part is empty or begins with a dot"),
        ({"path": "/a/"}, "a part is empty or begins with a dot"),
        ({"path": "/../a"}, "a part is empty or begins with a dot"),
        ({"path": "/a/b/c/d/e"}, "more than 4 folders or 100 characters"),
        ({"path": "/" + "a" * 100}, "more than 4 folders or 100 characters"),
        ({"path": "/a;b"}, "a character that EFS does not accept"),
        ({"name": "datasets"}, "Two access points have the name datasets"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_made(site: Site, its_id: str, point: dict[str, str], said: str) -> None:
    refused = site.run(MODULE, file_system_id=its_id, access_points=[DATASETS, {"name": "new", **point}])
    assert said in refused["msg"] and refused["remedy"] and there(site, its_id) == []


def test_a_deletion_needs_the_id_twice(site: Site, its_id: str) -> None:
    site.run(MODULE, file_system_id=its_id, access_points=[TRAINING])
    refused = site.run(MODULE, state="absent", file_system_id=its_id, confirm="yes")
    assert f"of {its_id} is not deleted" in refused["msg"] and len(there(site, its_id)) == 1
