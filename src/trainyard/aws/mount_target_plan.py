"""Read the mount targets of a file system, and execute the changes that `mount_target` decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..core.plan import Plan, Step
from .changes import Change
from .client import BUSY, Aws, Patience, persist
from .errors import AwsError
from .mount_target import MountTarget, Subnet, check, decide, in_any_subnet, observed, pairs, shown, target, with_others
from .states import AVAILABLE, GONE, LEAVING, Goal, State, settle


def find(aws: Aws, file_system_id: str) -> list[MountTarget]:
    """Return all mount targets of a file system, without security groups; empty if it does not exist."""
    name = f"the file system {file_system_id}"
    found = aws.items(
        "efs:DescribeMountTargets", "MountTargets", name, fine=("FileSystemNotFound",), FileSystemId=file_system_id
    )
    return [observed(each) for each in found]


def find_subnets(aws: Aws, ids: Sequence[str]) -> dict[str, Subnet]:
    """Return subnets by id.

    :raises AwsError: a subnet does not exist in the region and account.
    """
    if not ids:
        return {}
    found = aws.items("ec2:DescribeSubnets", "Subnets", f"the subnets {', '.join(ids)}", SubnetIds=sorted(set(ids)))
    return {each["SubnetId"]: Subnet(each["SubnetId"], each["VpcId"], each["AvailabilityZone"]) for each in found}


def with_groups(aws: Aws, targets: Iterable[MountTarget]) -> list[MountTarget]:
    """Add the security groups, from the network interfaces: one call in total, instead of one EFS call per target."""
    targets = list(targets)
    interfaces = [each.interface for each in targets if each.interface]
    if not interfaces:
        return targets
    found = aws.items(
        "ec2:DescribeNetworkInterfaces",
        "NetworkInterfaces",
        f"the network interfaces {', '.join(interfaces)}",
        Filters=[{"Name": "network-interface-id", "Values": interfaces}],
    )
    groups = {each["NetworkInterfaceId"]: frozenset(one["GroupId"] for one in each["Groups"]) for each in found}
    return [replace(each, security_groups=groups.get(each.interface)) for each in targets]


class MountTargetsPlan:
    """The mount targets of one file system.

    :param file_system_id: only in check mode, empty for a file system that does not exist yet.
    :param wanted: the desired targets; None removes all.
    :param any_subnet: accept an existing target in another subnet of the zone as the desired one.
    :param purge: also delete targets in subnets that are not desired.
    :param purge_security_groups: also remove security groups of targets that are not desired.
    :param zone: zone of a One Zone file system.
    """

    def __init__(
        self,
        aws: Aws,
        file_system_id: str,
        wanted: Sequence[MountTarget] | None,
        *,
        any_subnet: bool = False,
        purge: bool = False,
        purge_security_groups: bool = False,
        zone: str = "",
        patience: Patience,
    ) -> None:
        self._aws, self._id, self._wanted, self._patience = aws, file_system_id, wanted, patience
        self._zone = zone
        self._any_subnet, self._purge_groups = any_subnet, purge_security_groups
        self._purge = purge or wanted is None
        self._name = f"the file system {file_system_id or 'that will be made'}"
        self._found: list[MountTarget] = []
        self._target: list[MountTarget] = []
        self._stale = False

    def plan(self) -> Plan:
        """Compare and plan the changes.

        :raises TrainyardError: AWS would refuse the targets, or cannot change an existing one.
        """
        wanted = list(self._wanted or ())
        found = find(self._aws, self._id) if self._id else []
        new = [want.subnet for want, have in pairs(wanted, found) if have is None]
        subnets = find_subnets(self._aws, new)
        if self._any_subnet:
            wanted = in_any_subnet(wanted, found, subnets)
        named = {each.subnet for each in wanted}
        check(wanted, [each for each in found if not self._purge or each.subnet in named], subnets, self._zone)
        wanted = [replace(each, zone=subnets[each.subnet].zone) if each.subnet in subnets else each for each in wanted]
        if any(each.security_groups is not None for each in wanted):
            found = with_groups(self._aws, found)
            wanted = wanted if self._purge_groups else with_others(wanted, found)
        self._found = found
        changes = decide(wanted, found, purge=self._purge)
        self._target = target(wanted, found, purge=self._purge)
        return Plan(
            steps=[Step(change.what, partial(self._make, change)) for change in changes],
            before=shown([each for each in found if each.state not in LEAVING], wanted),
            after=shown(self._target, wanted),
        )

    def settled(self) -> None:
        """Wait until the desired targets are available, and the deleted ones are gone."""
        self._wait([each.subnet for each in self._target], AVAILABLE)
        self._wait(self._going(), GONE)

    def result(self) -> list[dict[str, Any]]:
        """Return the targets, in check mode as they will be; values that AWS has not chosen yet are empty."""
        there = {each.subnet: each for each in self._found if each.state not in LEAVING}
        return [
            {
                "id": each.id,
                "subnet_id": each.subnet,
                "availability_zone": each.zone or want.zone,
                "vpc_id": each.vpc,
                "ip_address": each.ip_address or "",
                "ipv6_address": each.ipv6_address or "",
                "network_interface_id": each.interface,
                "state": each.state or "absent",
            }
            for want in self._target
            for each in [there.get(want.subnet, want)]
        ]

    def _going(self) -> list[str]:
        """Return the subnets of targets that are being deleted, or are deleted by this plan."""
        staying = {each.subnet for each in self._target}
        return [each.subnet for each in self._found if each.state in LEAVING or each.subnet not in staying]

    def _wait(self, subnets: Sequence[str], goal: Goal) -> None:
        states = {each.subnet: each.state for each in self._found}
        if all(states.get(each) in goal.reached for each in subnets) and not self._stale:
            return

        def look() -> dict[str, State]:
            self._found, self._stale = find(self._aws, self._id), False
            now = {each.subnet: each.state for each in self._found}
            return {f"the mount target in {each}": now.get(each) for each in subnets}

        settle(look, goal, self._patience)

    def _make(self, change: Change) -> None:
        self._stale = True
        if change.operation == "efs:CreateMountTarget":
            self._create(change)
            return
        name = f"{change.parameters['MountTargetId']} of {self._name}"
        call = partial(self._aws.call, change.operation, name, fine=change.fine, **change.parameters)
        # An interrupted run may have started its creation, which is still in progress.
        persist(call, ("IncorrectMountTargetState",), self._patience, self._patience.timeout)

    def _create(self, change: Change) -> None:
        # A target that is being deleted still occupies its zone.
        if going := self._going():
            self._wait(going, GONE)
        subnet = change.parameters["SubnetId"]
        name = f"{subnet} and {self._name}"
        call = partial(self._aws.call, change.operation, name, FileSystemId=self._id, **change.parameters)
        try:
            # A new security group may not be visible yet, either.
            persist(call, ("SecurityGroupNotFound", BUSY), self._patience)
        except AwsError as error:
            if error.code != "MountTargetConflict":
                raise
            # A call whose answer was lost, or another run, may have created it, and it may not be listed yet.
            persist(partial(self._require_shown, subnet, error), (error.code,), self._patience)
        self._stale = True

    def _require_shown(self, subnet: str, error: AwsError) -> None:
        if subnet not in [each.subnet for each in find(self._aws, self._id)]:
            raise error
