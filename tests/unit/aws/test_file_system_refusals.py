"""What module efs_file_system refuses: nothing is changed, and the message says what to do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.aws.conftest import Site
from tests.unit.aws.test_file_system import MODULE, removal

# A server is asked, and asked again.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"provisioned_mibps": 8}, "provisioned_mibps is 8 and throughput_mode is not set"),
        (
            {"provisioned_mibps": 8, "throughput_mode": "elastic"},
            "provisioned_mibps is 8 and throughput_mode is elastic",
        ),
        ({"throughput_mode": "provisioned"}, "throughput_mode is provisioned and provisioned_mibps is not set"),
        ({"throughput_mode": "provisioned", "provisioned_mibps": 0.5}, "provisioned_mibps is 0.5"),
        ({"performance_mode": "maxIO", "throughput_mode": "elastic"}, "maxIO with elastic throughput"),
        ({"performance_mode": "maxIO", "availability_zone": "eu-central-1a"}, "maxIO with a single zone"),
        ({"kms_key_id": "alias/mine"}, "kms_key_id is set and encrypted is not"),
        ({"require_tls": True, "policy": {}}, "require_tls and policy exclude each other"),
        ({"creation_token": "x" * 65}, "has 65 characters"),
        ({"creation_token": ""}, "has 0 characters"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_made(site: Site, options: dict[str, Any], said: str) -> None:
    refused = site.run(MODULE, **{"creation_token": "mine", **options})
    assert said in refused["msg"] and refused["remedy"]
    assert site.file_systems() == []


def test_what_aws_cannot_change_is_refused_with_all_of_it(site: Site) -> None:
    site.run(MODULE, creation_token="mine", encrypted=True, kms_key_id="1234abcd-12ab-34cd-56ef-1234567890ab")
    before = site.file_systems()
    other = {"encrypted": False, "availability_zone": "eu-central-1a", "tags": {"new": "1"}}
    refused = site.run(MODULE, creation_token="mine", **other)
    assert refused["differing"] == ["encrypted is True, not False", "availability_zone is none, not eu-central-1a"]
    assert refused["changed"] is False and "another token" in refused["remedy"]
    key = "ffffffff-12ab-34cd-56ef-1234567890ab"
    refused = site.run(MODULE, creation_token="mine", encrypted=True, kms_key_id=key, performance_mode="maxIO")
    assert [each.split()[0] for each in refused["differing"]] == ["performance_mode", "kms_key_id"]
    after = site.file_systems()
    for each in [*before, *after]:
        each.pop("SizeInBytes")
    assert after == before


@pytest.mark.parametrize("tags", [{}, {"trainyard": "theirs"}])
def test_what_somebody_else_has_made_is_left_to_them(site: Site, tags: dict[str, str]) -> None:
    site.run(MODULE, creation_token="mine", backup=True, tags=tags)
    before = site.proxy.names(write=True)
    refused = site.run(MODULE, creation_token="mine", backup=False, tags={"trainyard": "mine"})
    assert "was not made for mine: its tag trainyard is " in refused["msg"] and "tag it" in refused["remedy"]
    assert site.proxy.names(write=True) == before


def test_less_throughput_within_a_day_is_refused_by_aws_and_said_so(site: Site) -> None:
    provisioned = {"creation_token": "mine", "throughput_mode": "provisioned"}
    site.run(MODULE, **provisioned, provisioned_mibps=32)
    site.proxy.refuse("efs:UpdateFileSystem", "TooManyRequests")
    refused = site.run(MODULE, **provisioned, provisioned_mibps=16)
    assert refused["call"] == "elasticfilesystem:UpdateFileSystem" and refused["code"] == "TooManyRequests"
    assert "once in 24 hours" in refused["msg"] and refused["steps_done"] == []
    assert site.proxy.names().count("efs:UpdateFileSystem") == 1, "a refusal is not tried again"


def test_a_deletion_needs_the_id_twice_and_no_targets(site: Site) -> None:
    its_id = site.run(MODULE, creation_token="mine")["file_system"]["id"]
    for options in ({"confirm": ""}, {"confirm": "fs-00000000"}, {"confirm": "mine"}):
        refused = site.run(MODULE, state="absent", file_system_id=its_id, **options)
        assert f"of {its_id} is not deleted" in refused["msg"]
    refused = site.run(MODULE, **removal(its_id, creation_token="theirs"))
    assert f"{its_id} has the token mine, not theirs" in refused["msg"]
    site.efs.create_mount_target(FileSystemId=its_id, SubnetId=site.subnets[0])
    refused = site.run(MODULE, **removal(its_id, timeout=0))
    assert refused["code"] == "FileSystemInUse" and "Delete its mount targets first" in refused["msg"]
    assert len(site.file_systems()) == 1
