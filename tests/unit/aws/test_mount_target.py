"""Module efs_mount_target against moto: its whole life, each step in check mode first, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.aws.model import failure
from tests.unit.aws.conftest import REGION, Site

# A server is asked, and asked again.
pytestmark = pytest.mark.slow

MODULE = "efs_mount_target"


@pytest.fixture
def its_id(site: Site) -> str:
    return str(site.efs.create_file_system(CreationToken="mine")["FileSystemId"])


def there(site: Site, its_id: str) -> list[dict[str, Any]]:
    return site.efs.describe_mount_targets(FileSystemId=its_id, MaxItems=100)["MountTargets"]


def groups(site: Site, target: dict[str, Any]) -> list[str]:
    found = site.efs.describe_mount_target_security_groups(MountTargetId=target["MountTargetId"])
    return sorted(found["SecurityGroups"])


def test_whole_life(site: Site, its_id: str) -> None:
    other = site.group("other")
    a, b, c = site.subnets
    targets = [{"subnet_id": each, "security_groups": [site.nodes]} for each in (a, b, c)]
    made = site.settles(MODULE, file_system_id=its_id, targets=targets)
    assert made["steps"][0] == f"Create the mount target in {a} ({REGION}a), with {site.nodes}"
    assert [each["availability_zone"] for each in made["mount_targets"]] == [f"{REGION}{zone}" for zone in "abc"]
    assert {each["ip_address"] for each in made["mount_targets"]} == {each["IpAddress"] for each in there(site, its_id)}
    assert {each["state"] for each in made["mount_targets"]} == {"available"}

    both = {"subnet_id": a, "security_groups": [other, site.nodes]}
    changed = site.settles(MODULE, file_system_id=its_id, targets=[both, *targets[1:]])
    assert len(changed["steps"]) == 1
    (in_a,) = [each for each in there(site, its_id) if each["SubnetId"] == a]
    assert groups(site, in_a) == sorted([other, site.nodes])
    turned = {"subnet_id": a, "security_groups": [site.nodes, other]}
    assert site.both(MODULE, file_system_id=its_id, targets=[turned])["changed"] is False, "the groups are a set"

    only = {"file_system_id": its_id, "targets": targets}
    assert site.both(MODULE, **only)["changed"] is False, "a group that somebody has added stays"
    purged = site.settles(MODULE, **only, purge_security_groups=True)
    assert len(purged["steps"]) == 1 and groups(site, in_a) == [site.nodes]

    assert site.both(MODULE, file_system_id=its_id, targets=[])["changed"] is False, "nothing is deleted unasked"
    left = site.settles(MODULE, file_system_id=its_id, targets=targets[1:], purge=True)
    assert left["steps"] == [f"Delete the mount target {in_a['MountTargetId']} in {a}"]
    assert {each["SubnetId"] for each in there(site, its_id)} == {b, c}

    gone = site.both(MODULE, state="absent", file_system_id=its_id, confirm=its_id)
    assert len(gone["steps"]) == 2 and gone["diff"]["after"] == {}
    assert site.both(MODULE, state="absent", file_system_id=its_id, confirm=its_id)["changed"] is False
    assert there(site, its_id) == []


def test_states_on_the_way_are_waited_for(site: Site, its_id: str) -> None:
    gaps = site.proxy.gaps
    gaps.hidden, gaps.creating, gaps.deleting = 2, 3, 3
    a, b, _ = site.subnets
    made = site.both(MODULE, file_system_id=its_id, targets=[{"subnet_id": a}, {"subnet_id": b}])
    assert {each["state"] for each in made["mount_targets"]} == {"available"}
    # The first is waited for together with the second.
    assert site.proxy.names()[-8:].count("efs:CreateMountTarget") == 2
    elsewhere = site.subnet(site.vpc, "a", 9)
    moved = site.settles(
        MODULE, file_system_id=its_id, targets=[{"subnet_id": elsewhere}, {"subnet_id": b}], purge=True
    )
    assert [step.split()[0] for step in moved["steps"]] == ["Delete", "Create"]
    assert {each["SubnetId"] for each in there(site, its_id)} == {elsewhere, b}
    assert site.both(MODULE, state="absent", file_system_id=its_id, confirm=its_id)["changed"] is True
    assert there(site, its_id) == []


def test_a_file_system_of_one_zone_has_no_targets_in_others(site: Site, its_id: str) -> None:
    targets = [{"subnet_id": each} for each in site.subnets[:2]]
    refused = site.run(MODULE, file_system_id=its_id, targets=targets, availability_zone=f"{REGION}a")
    assert f"{site.subnets[1]} is in {REGION}b, but the file system is only in {REGION}a" in refused["msg"]
    assert there(site, its_id) == [] and refused["changed"] is False
    site.settles(MODULE, file_system_id=its_id, targets=targets[:1], availability_zone=f"{REGION}a")


def test_one_that_is_being_deleted_is_made_anew(site: Site, its_id: str) -> None:
    (old,) = site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": site.subnets[0]}])["mount_targets"]
    site.proxy.gaps.deleting = 4
    site.through.delete_mount_target(MountTargetId=old["id"])
    (new,) = site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": site.subnets[0]}])["mount_targets"]
    assert new["id"] not in ("", old["id"]) and new["state"] == "available"


@pytest.mark.parametrize("family", ["IPV4_ONLY", "IPV6_ONLY", "DUAL_STACK"])
def test_families_of_addresses(site: Site, its_id: str, family: str) -> None:
    target = {"subnet_id": site.subnets[0], "ip_address_type": family}
    (made,) = site.settles(MODULE, file_system_id=its_id, targets=[target])["mount_targets"]
    assert bool(made["ip_address"]) is (family != "IPV6_ONLY") and bool(made["ipv6_address"]) is (family != "IPV4_ONLY")


def test_addresses_of_ones_own(site: Site, its_id: str) -> None:
    target = {"subnet_id": site.subnets[0], "ip_address": "10.9.0.77"}
    (made,) = site.settles(MODULE, file_system_id=its_id, targets=[target])["mount_targets"]
    assert made["ip_address"] == "10.9.0.77"
    refused = site.run(MODULE, file_system_id=its_id, targets=[{**target, "ip_address": "10.9.0.78"}])
    assert refused["differing"] == ["ip_address is 10.9.0.77, not 10.9.0.78"] and refused["changed"] is False


def test_lost_answers_make_nothing_twice(site: Site, its_id: str) -> None:
    site.proxy.lose("efs:CreateMountTarget", times=2)
    # What was made is not shown at once, either, and the second try is told that it is there.
    site.proxy.gaps.hidden = 4
    site.settles(MODULE, file_system_id=its_id, targets=[{"subnet_id": each} for each in site.subnets])
    assert len(there(site, its_id)) == 3


def test_a_group_that_efs_does_not_know_yet_is_waited_for(site: Site, its_id: str) -> None:
    site.proxy.refuse("efs:CreateMountTarget", "SecurityGroupNotFound", times=2)
    target = {"subnet_id": site.subnets[0], "security_groups": [site.nodes]}
    site.settles(MODULE, file_system_id=its_id, targets=[target])


def test_more_than_a_page(site: Site, its_id: str) -> None:
    site.proxy.gaps.page = 1
    targets = [{"subnet_id": each, "security_groups": [site.nodes]} for each in site.subnets]
    site.settles(MODULE, file_system_id=its_id, targets=targets)
    site.proxy.calls.clear()
    assert site.run(MODULE, file_system_id=its_id, targets=targets)["changed"] is False
    assert site.proxy.names() == ["efs:DescribeMountTargets"] * 3 + ["ec2:DescribeNetworkInterfaces"] * 3
    gone = site.run(MODULE, state="absent", file_system_id=its_id, confirm=its_id)
    assert len(gone["steps"]) == 3 and there(site, its_id) == []


def test_a_run_with_nothing_to_do_asks_once(site: Site, its_id: str) -> None:
    targets = [{"subnet_id": each, "security_groups": [site.nodes]} for each in site.subnets]
    site.run(MODULE, file_system_id=its_id, targets=targets)
    site.proxy.calls.clear()
    site.run(MODULE, file_system_id=its_id, targets=targets)
    assert site.proxy.names() == ["efs:DescribeMountTargets", "ec2:DescribeNetworkInterfaces"]


def test_check_mode_plans_for_a_file_system_that_is_not_there_yet(site: Site) -> None:
    target = {"subnet_id": site.subnets[0], "security_groups": [""]}
    planned = site.run(MODULE, check=True, file_system_id="", targets=[target])
    assert planned["steps"] == [
        f"Create the mount target in {site.subnets[0]} ({REGION}a), with the new security group"
    ]
    refused = site.run(MODULE, file_system_id="", targets=[target])
    assert "file_system_id is empty" in refused["msg"]


def test_what_is_done_before_a_failure_is_said(site: Site, its_id: str) -> None:
    a, b, _ = site.subnets
    site.proxy.rules.append(
        lambda call: (
            failure(call, "NoFreeAddressesInSubnet", "It is full.") if call.parameters.get("SubnetId") == b else None
        )
    )
    failed = site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": a}, {"subnet_id": b}])
    assert failed["changed"] is True and failed["steps_done"] == [f"Create the mount target in {a} ({REGION}a)"]
    assert f"elasticfilesystem:CreateMountTarget for {b}" in failed["msg"] and "another subnet" in failed["remedy"]
    site.proxy.rules.clear()
    assert len(site.run(MODULE, file_system_id=its_id, targets=[{"subnet_id": a}, {"subnet_id": b}])["steps"]) == 1
