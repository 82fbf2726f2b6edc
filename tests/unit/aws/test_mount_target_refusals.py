"""Module efs_mount_target against moto: which subnets cannot be, which will do, and what is not deleted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.aws.conftest import REGION, Site

# A server is asked, and asked again.
pytestmark = pytest.mark.slow

MODULE = "efs_mount_target"


@pytest.fixture
def its_id(site: Site) -> str:
    return str(site.efs.create_file_system(CreationToken="mine")["FileSystemId"])


def there(site: Site, its_id: str) -> list[dict[str, Any]]:
    return site.efs.describe_mount_targets(FileSystemId=its_id, MaxItems=100)["MountTargets"]


def test_what_cannot_be_is_refused_and_nothing_made(site: Site, its_id: str) -> None:
    a, b, _ = site.subnets
    in_a, far = site.subnet(site.vpc, "a", 9), site.elsewhere()
    site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": b}])
    in_b = site.subnet(site.vpc, "b", 10)
    for subnets, said in (
        ([a, in_a], f"{in_a} is in {REGION}a, in which {a} is listed, too"),
        ([a, a], f"{a} is listed twice"),
        ([in_b], f"{in_b} is in {REGION}b, in which {b} has a mount target already"),
        ([a, far], f"{far} is in vpc-"),
        (["subnet-00000000000000000"], "ec2:DescribeSubnets"),
    ):
        refused = site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": each} for each in subnets])
        assert said in refused["msg"] and refused["remedy"] and refused["changed"] is False
    assert [each["SubnetId"] for each in there(site, its_id)] == [b]


def test_the_target_of_a_zone_will_do_for_all_its_subnets(site: Site, its_id: str) -> None:
    a, b, _ = site.subnets
    in_a, far = site.subnet(site.vpc, "a", 9), site.elsewhere()
    site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": a}])
    any_subnet = {"file_system_id": its_id, "any_subnet": True, "purge": True}
    done = site.settles(MODULE, **any_subnet, targets=[{"subnet_id": in_a}, {"subnet_id": b}])
    assert done["steps"] == [f"Create the mount target in {b} ({REGION}b)"]
    assert [each["subnet_id"] for each in done["mount_targets"]] == [a, b]
    for subnets, said in (([in_a, a], f"{a} has a mount target already"), ([in_a, far], f"{far} is in vpc-")):
        refused = site.run(MODULE, **any_subnet, targets=[{"subnet_id": each} for each in subnets])
        assert said in refused["msg"] and refused["changed"] is False


def test_a_deletion_needs_the_id_twice(site: Site, its_id: str) -> None:
    site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": site.subnets[0]}])
    refused = site.run(MODULE, state="absent", file_system_id=its_id)
    assert f"of {its_id} is not deleted" in refused["msg"] and len(there(site, its_id)) == 1
