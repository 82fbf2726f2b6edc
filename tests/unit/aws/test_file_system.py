"""Module efs_file_system against moto: its whole life, each step in check mode first, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.aws.conftest import Site
from trainyard.aws.file_system import REQUIRE_TLS

# A server is asked, and asked again.
pytestmark = pytest.mark.slow

MODULE = "efs_file_system"
FULL: dict[str, Any] = {
    "creation_token": "mine",
    "name": "mine",
    "performance_mode": "generalPurpose",
    "throughput_mode": "elastic",
    "encrypted": True,
    "lifecycle": {"transition_to_ia": "AFTER_30_DAYS", "transition_to_primary": "AFTER_1_ACCESS"},
    "backup": True,
    "require_tls": True,
    "tags": {"trainyard": "mine"},
}


def removal(its_id: str, **more: Any) -> dict[str, Any]:
    return {"state": "absent", "file_system_id": its_id, "confirm": its_id, **more}


def test_whole_life(site: Site) -> None:
    made = site.settles(MODULE, **FULL)
    assert made["steps"] == [
        "Create the file system of mine",
        "Set its lifecycle: transition_to_ia AFTER_30_DAYS, transition_to_primary AFTER_1_ACCESS",
        "Set its policy",
    ]
    (there,) = site.file_systems()
    its_id = made["file_system"]["id"]
    assert there["FileSystemId"] == its_id and there["ThroughputMode"] == "elastic" and there["Encrypted"]
    assert made["file_system"]["dns_name"] == f"{its_id}.efs.eu-central-1.amazonaws.com"
    assert made["file_system"]["state"] == "available"
    assert json.loads(site.efs.describe_file_system_policy(FileSystemId=its_id)["Policy"]) == REQUIRE_TLS

    changes = {"throughput_mode": "provisioned", "provisioned_mibps": 16.0, "backup": False, "require_tls": False}
    changed = site.settles(MODULE, **{**FULL, **changes}, policy={})
    said = ["Change its throughput to provisioned, 16 MiB/s", "Switch its backup off", "Remove its policy"]
    assert changed["steps"] == said
    assert changed["file_system"]["id"] == its_id

    bare = {"creation_token": "mine", "lifecycle": {}, "tags": {"left": "1"}, "purge_tags": True}
    said = ["Set its lifecycle: none", "Tag it: left=1", "Remove tags of it: Name, trainyard"]
    assert site.settles(MODULE, **bare)["steps"] == said
    assert site.file_systems()[0]["Tags"] == [{"Key": "left", "Value": "1"}]

    gone = site.both(MODULE, **removal(its_id))
    assert gone["steps"] == [f"Delete the file system {its_id} of mine with all that is in it"]
    assert site.both(MODULE, **removal(its_id))["changed"] is False
    assert site.file_systems() == []


def test_states_on_the_way_are_waited_for(site: Site) -> None:
    gaps = site.proxy.gaps
    gaps.hidden, gaps.creating, gaps.updating, gaps.deleting = 2, 2, 2, 2
    made = site.settles(MODULE, **FULL)
    assert made["file_system"]["state"] == "available"
    changed = site.both(
        MODULE, **{**FULL, "throughput_mode": "bursting", "backup": False, "require_tls": False}, policy={}
    )
    assert len(changed["steps"]) == 3
    its_id = made["file_system"]["id"]
    assert site.both(MODULE, **removal(its_id, creation_token="mine"))["changed"] is True
    assert site.file_systems() == []


def test_one_that_is_being_deleted_is_made_anew(site: Site) -> None:
    its_id = site.run(MODULE, creation_token="mine")["file_system"]["id"]
    site.proxy.gaps.deleting = 4
    site.through.delete_file_system(FileSystemId=its_id)
    anew = site.run(MODULE, creation_token="mine")
    assert anew["changed"] is True and anew["file_system"]["id"] not in ("", its_id)
    assert [each["FileSystemId"] for each in site.file_systems()] == [anew["file_system"]["id"]]


@pytest.mark.parametrize("hidden", [0, 3])
def test_a_creation_whose_answer_is_lost_is_gone_on_with(site: Site, hidden: int) -> None:
    site.proxy.gaps.hidden = hidden
    site.proxy.lose("efs:CreateFileSystem")
    site.settles(MODULE, **FULL)
    assert len(site.file_systems()) == 1
    assert site.proxy.names(write=True).count("efs:CreateFileSystem") == 2


def test_another_creation_at_the_same_time_is_not_doubled(site: Site) -> None:
    """One of the same token that was not shown when the plan was made, with other properties."""
    site.proxy.gaps.hidden = 2
    site.through.create_file_system(CreationToken="mine", Tags=[{"Key": "trainyard", "Value": "mine"}])
    done = site.run(MODULE, **{**FULL, "encrypted": False})
    assert "msg" not in done, done
    assert site.both(MODULE, **{**FULL, "encrypted": False})["changed"] is False
    assert len(site.file_systems()) == 1


def test_throttling_is_waited_out(site: Site) -> None:
    site.proxy.refuse("efs:DescribeFileSystems", "ThrottlingException", times=1)
    site.proxy.refuse("efs:CreateFileSystem", "ThrottlingException", times=1)
    assert site.run(MODULE, creation_token="mine")["changed"] is True
    assert len(site.file_systems()) == 1


def test_plain_nfs_is_admitted_by_removing_our_policy_and_no_other(site: Site) -> None:
    strict = site.settles(MODULE, creation_token="mine", require_tls=True)["file_system"]
    assert strict["requires_tls"] is True
    lax = site.settles(MODULE, creation_token="mine", require_tls=False)
    assert lax["steps"] == ["Remove its policy"] and lax["file_system"]["requires_tls"] is False
    theirs = {**REQUIRE_TLS, "Statement": REQUIRE_TLS["Statement"][1:]}
    site.efs.put_file_system_policy(FileSystemId=strict["id"], Policy=json.dumps(theirs))
    site.run(MODULE, creation_token="mine", policy=theirs)
    kept = site.both(MODULE, creation_token="mine", require_tls=False)
    assert kept["steps"] == [] and kept["file_system"]["requires_tls"] is True, "what AWS has counts"


def test_nothing_is_asked_that_is_not_wanted(site: Site) -> None:
    site.run(MODULE, **FULL)
    for options, expected in (
        ({"creation_token": "mine"}, ["efs:DescribeFileSystems"]),
        (
            FULL,
            [
                *("efs:DescribeFileSystems", "efs:DescribeLifecycleConfiguration"),
                *("efs:DescribeBackupPolicy", "efs:DescribeFileSystemPolicy"),
            ],
        ),
    ):
        site.proxy.calls.clear()
        assert site.run(MODULE, **options)["changed"] is False
        assert site.proxy.names() == expected


def test_what_is_set_for_the_archive_stays(site: Site) -> None:
    its_id = site.run(MODULE, creation_token="mine", throughput_mode="elastic")["file_system"]["id"]
    archive = {"TransitionToArchive": "AFTER_90_DAYS"}
    site.efs.put_lifecycle_configuration(FileSystemId=its_id, LifecyclePolicies=[archive])
    site.settles(MODULE, creation_token="mine", lifecycle={"transition_to_ia": "AFTER_30_DAYS"})
    found = site.efs.describe_lifecycle_configuration(FileSystemId=its_id)["LifecyclePolicies"]
    assert archive in found and {"TransitionToIA": "AFTER_30_DAYS"} in found


def test_a_policy_of_ones_own_in_another_form_is_the_same(site: Site) -> None:
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "*",
        "Condition": {"Bool": {"aws:SecureTransport": False}},
    }
    own = {"creation_token": "mine", "policy": {"Version": "2012-10-17", "Statement": [statement]}}
    its_id = site.settles(MODULE, **own)["file_system"]["id"]
    arn = site.file_systems()[0]["FileSystemArn"]
    stored = {**statement, "Sid": "1", "Principal": {"AWS": "*"}, "Action": ["*"], "Resource": arn}
    stored["Condition"] = {"Bool": {"aws:SecureTransport": "false"}}
    text = json.dumps({"Version": "2012-10-17", "Id": "efs-1", "Statement": stored})
    site.efs.put_file_system_policy(FileSystemId=its_id, Policy=text)
    assert site.both(MODULE, **own)["changed"] is False
    assert site.both(MODULE, creation_token="mine", require_tls=True)["steps"] == ["Set its policy"]
