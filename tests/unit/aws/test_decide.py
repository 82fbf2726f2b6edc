"""What is decided from what is wanted and what is there, as tables; no AWS and no moto."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.aws import access_point, client, file_system, mount_target, security_group
from trainyard.aws import changes as tags
from trainyard.aws.access_point import AccessPoint, token_of
from trainyard.aws.client import AwsError, Patience
from trainyard.aws.file_system import FileSystem
from trainyard.aws.mount_target import MountTarget
from trainyard.aws.security_group import Rule, SecurityGroup, Wanted
from trainyard.core.errors import TrainyardError, WaitError
from trainyard.core.waiter import Clock

THERE = FileSystem("generalPurpose", "bursting", None, True, "arn:aws:kms:eu-central-1:1:key/abc", tags={"a": "1"})


def operations(changes: list[Any]) -> list[str]:
    return [change.operation.partition(":")[2] for change in changes]


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        (FileSystem(), THERE, []),
        (FileSystem(), None, ["CreateFileSystem"]),
        (FileSystem(lifecycle={}, policy={}, backup=False), None, ["CreateFileSystem"]),
        (FileSystem(encrypted=True, kms_key_id="abc", throughput_mode="bursting", tags={"a": "1"}), THERE, []),
        (FileSystem(encrypted=True, kms_key_id="alias/any"), THERE, []),
        (FileSystem(throughput_mode="elastic"), THERE, ["UpdateFileSystem"]),
        (FileSystem(throughput_mode="provisioned", provisioned_mibps=8), THERE, ["UpdateFileSystem"]),
        (FileSystem(tags={"a": "2"}), THERE, ["TagResource"]),
        (FileSystem(tags={}), THERE, []),
        (FileSystem(backup=True), FileSystem(backup=False), ["PutBackupPolicy"]),
        (
            FileSystem(lifecycle={"transition_to_ia": "AFTER_7_DAYS"}),
            FileSystem(lifecycle={}),
            ["PutLifecycleConfiguration"],
        ),
        (FileSystem(lifecycle={}), FileSystem(lifecycle={"transition_to_archive": "AFTER_90_DAYS"}), []),
        (FileSystem(policy={}), FileSystem(policy=file_system.REQUIRE_TLS), ["DeleteFileSystemPolicy"]),
        (FileSystem(policy=file_system.REQUIRE_TLS), FileSystem(policy={}), ["PutFileSystemPolicy"]),
        (FileSystem(require_tls=True), FileSystem(policy={}), ["PutFileSystemPolicy"]),
        (FileSystem(require_tls=True), None, ["CreateFileSystem", "PutFileSystemPolicy"]),
        (FileSystem(require_tls=False), None, ["CreateFileSystem"]),
        (FileSystem(require_tls=False), FileSystem(policy=file_system.REQUIRE_TLS), ["DeleteFileSystemPolicy"]),
        (FileSystem(require_tls=False), FileSystem(policy={"Statement": [{"Effect": "Deny"}]}), []),
    ],
)
def test_a_file_system(wanted: FileSystem, found: FileSystem | None, expected: list[str]) -> None:
    changes = file_system.decide(wanted, found, "mine")
    assert operations(changes) == expected
    after = file_system.target(wanted, found)
    assert file_system.decide(wanted, after, "mine") == [], "what will be is what is wanted"


def test_provisioned_throughput_ends_with_its_mode() -> None:
    found = FileSystem(throughput_mode="provisioned", provisioned_mibps=8.0)
    (change,) = file_system.decide(FileSystem(throughput_mode="elastic"), found, "mine")
    assert change.parameters == {"ThroughputMode": "elastic"}
    assert file_system.target(FileSystem(throughput_mode="elastic"), found).provisioned_mibps is None


@pytest.mark.parametrize(
    ("key", "arn", "same"),
    [
        ("abc", "arn:aws:kms:r:1:key/abc", True),
        ("arn:aws:kms:r:1:key/abc", "arn:aws:kms:r:1:key/abc", True),
        ("abc", "arn:aws:kms:r:1:key/xabc", False),
        ("abc", None, False),
        ("arn:aws:kms:r:1:alias/a", "arn:aws:kms:r:1:key/abc", True),
    ],
)
def test_keys(key: str, arn: str | None, same: bool) -> None:
    assert file_system.same_key(key, arn) is same


A = MountTarget(
    "subnet-a", "IPV4_ONLY", "10.0.0.1", None, frozenset({"sg-1"}), "fsmt-a", "a", "vpc", "available", "eni-a"
)


@pytest.mark.parametrize(
    ("wanted", "purge", "expected"),
    [
        ([], False, []),
        ([], True, ["DeleteMountTarget"]),
        ([MountTarget("subnet-a")], True, []),
        ([MountTarget("subnet-a", "IPV4_ONLY", "10.0.0.1")], False, []),
        ([MountTarget("subnet-a", security_groups=frozenset({"sg-2"}))], False, ["ModifyMountTargetSecurityGroups"]),
        ([MountTarget("subnet-b")], False, ["CreateMountTarget"]),
        ([MountTarget("subnet-b")], True, ["DeleteMountTarget", "CreateMountTarget"]),
    ],
)
def test_mount_targets(wanted: list[MountTarget], purge: bool, expected: list[str]) -> None:
    assert operations(mount_target.decide(wanted, [A], purge=purge)) == expected


def point(name: str, **more: Any) -> AccessPoint:
    return AccessPoint(name, path=f"/{name}", **more)


def test_access_points() -> None:
    there = point("one", id="fsap-1", token=token_of("fs-1", "one"), state="available", tags={"Name": "one", "x": "1"})
    for wanted, purge, expected in (
        ([], False, []),
        ([], True, ["DeleteAccessPoint"]),
        ([point("one")], True, []),
        ([point("one", tags={"y": "2"})], False, ["TagResource"]),
        ([point("two")], True, ["CreateAccessPoint", "DeleteAccessPoint"]),
    ):
        changes = access_point.decide("fs-1", wanted, [there], purge=purge)
        assert operations(changes) == expected
    assert len(token_of("fs-1", "one")) == 64 and token_of("fs-1", "one") != token_of("fs-2", "one")
    leaving = point("one", id="fsap-1", token=token_of("fs-1", "one"), state="deleting")
    assert operations(access_point.decide("fs-1", [point("one")], [leaving], purge=True)) == ["CreateAccessPoint"]


def test_a_security_group() -> None:
    rule, other = security_group.rules_of(["10.1.0.0/16"])[0], Rule("tcp 22", "ipv4", "10.0.0.0/8")
    there = SecurityGroup("sg-1", "n", "vpc", {"trainyard": "o"}, {rule: {"is": "nfs"}, other: {"is": "ssh"}})
    for more, found, expected in (
        ({}, there, []),
        ({"rules": [rule]}, there, []),
        ({"rules": [rule], "purge_rules": True}, there, ["RevokeSecurityGroupIngress"]),
        ({"purge_rules": True}, there, []),
        ({"rules": security_group.rules_of(["sg-2"])}, there, ["AuthorizeSecurityGroupIngress"]),
        ({"rules": [rule]}, None, ["CreateSecurityGroup", "AuthorizeSecurityGroupIngress"]),
        ({"tags": {"a": "1"}}, there, ["CreateTags"]),
    ):
        assert operations(security_group.decide(Wanted("n", "o", "d", **more), found, "vpc")) == expected
    with pytest.raises(TrainyardError, match="was not made for p: its tag trainyard is o"):
        security_group.decide(Wanted("n", "p", "d"), there, "vpc")


def test_everything_open_and_spans_of_ports_are_named() -> None:
    permissions = [
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-9"}]},
        {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 9, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]},
    ]
    group = security_group.observed({"GroupId": "sg-1", "GroupName": "n", "IpPermissions": permissions})
    assert sorted(map(str, group.rules)) == ["everything from sg-9", "tcp 1-9 from 10.0.0.0/8"]


def test_tags_of_aws_are_nobody_elses() -> None:
    assert tags.to_mapping([{"Key": "aws:backup", "Value": "x"}, {"Key": "a", "Value": "1"}]) == {"a": "1"}


class Ticking(Clock):
    """Goes on only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("goal", "seen", "expected"),
    [
        (client.AVAILABLE, [None, "creating", "updating", "available"], None),
        (client.AVAILABLE, ["creating", "error"], AwsError),
        (client.AVAILABLE, ["deleting"], AwsError),
        (client.GONE, ["available", "deleting", None], None),
        # As it was before the deletion, for some seconds.
        (client.GONE, ["error", "creating", "deleting", None], None),
        (client.GONE, ["deleting", "unheard of"], AwsError),
        (client.GONE, ["deleting"] + ["error"] * 9, WaitError),
        (client.GONE, ["deleting"] * 9, WaitError),
    ],
)
def test_waits(goal: client.Goal, seen: list[client.State], expected: type[Exception] | None) -> None:
    left = list(seen)
    patience = Patience(timeout=20, interval=3, clock=Ticking())
    if expected is None:
        client.settle(lambda: {"it": left.pop(0)}, goal, patience)
        assert left == []
        return
    with pytest.raises(expected, match=r"it is (error|deleting|unheard of)"):
        client.settle(lambda: {"it": left.pop(0)}, goal, patience)
