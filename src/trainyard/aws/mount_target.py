"""Mount targets of a file system, one per zone: desired state, observed state, and the calls to reconcile them.

The plan reads the mount targets, and executes the changes that `decide` returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from .changes import Change, differing
from .client import AVAILABLE, BUSY, GONE, LEAVING, Aws, AwsError, Goal, Patience, State, persist, settle

IMMUTABLE = ("ip_address_type", "ip_address", "ipv6_address")
"""Properties that AWS cannot change; another value needs another mount target."""


@dataclass(frozen=True)
class Subnet:
    """A subnet with its VPC and availability zone."""

    id: str
    vpc: str
    zone: str


@dataclass(frozen=True)
class MountTarget:
    """A mount target, desired or observed. None means that AWS chooses the value, or that it is not changed.

    :param ip_address_type: `IPV4_ONLY`, `IPV6_ONLY` or `DUAL_STACK`.
    :param security_groups: set of ids.
    :param id: empty for a desired mount target.
    """

    subnet: str
    ip_address_type: str | None = None
    ip_address: str | None = None
    ipv6_address: str | None = None
    security_groups: frozenset[str] | None = None
    id: str = ""
    zone: str = ""
    vpc: str = ""
    state: str = ""
    interface: str = ""


def observed(description: Mapping[str, Any]) -> MountTarget:
    """Convert a mount target description of EFS, which does not contain the security groups."""
    four, six = description.get("IpAddress"), description.get("Ipv6Address")
    return MountTarget(
        subnet=description["SubnetId"],
        ip_address_type="DUAL_STACK" if four and six else "IPV6_ONLY" if six else "IPV4_ONLY",
        ip_address=four,
        ipv6_address=six,
        id=description["MountTargetId"],
        zone=description.get("AvailabilityZoneName", ""),
        vpc=description.get("VpcId", ""),
        state=description["LifeCycleState"],
        interface=description.get("NetworkInterfaceId", ""),
    )


def check(
    wanted: Sequence[MountTarget], found: Sequence[MountTarget], subnets: Mapping[str, Subnet], zone: str = ""
) -> None:
    """Refuse targets that AWS would refuse: it allows one per zone, all of them in one VPC.

    :param subnets: subnets of the desired targets that do not exist yet, by id.
    :param zone: zone of a One Zone file system; empty for a regional one.
    :raises TrainyardError: two targets exclude each other; the message names them.
    """
    there = [Subnet(each.subnet, each.vpc, each.zone) for each in found if each.state not in LEAVING]
    names = {each.id for each in there}
    places = [*there, *(subnets[each.subnet] for each in wanted if each.subnet not in names)]
    twice = [each.subnet for each in wanted]
    if doubled := sorted({each for each in twice if twice.count(each) > 1}):
        _refuse(f"{doubled[0]} is listed twice", "List each subnet once.")
    for index, place in enumerate(places):
        if zone and place.zone != zone:
            _refuse(
                f"{place.id} is in {place.zone}, but the file system is only in {zone}",
                "Set one subnet of that zone; nodes in all zones of the VPC can mount its target.",
            )
        for other in places[:index]:
            if place.vpc != other.vpc:
                _refuse(
                    f"{place.id} is in {place.vpc}, and {other.id} in {other.vpc}",
                    "Set subnets of only one VPC, because a file system has mount targets in one VPC.",
                )
            if place.zone == other.zone:
                fact = "has a mount target already" if other in there else "is listed, too"
                _refuse(
                    f"{place.id} is in {place.zone}, in which {other.id} {fact}",
                    "Set one subnet per zone; the other subnets of the zone use its target.",
                )


def _refuse(fault: str, remedy: str) -> NoReturn:
    raise TrainyardError(f"The mount targets are invalid: {fault}.", remedy=remedy)


def pairs(wanted: Iterable[MountTarget], found: Iterable[MountTarget]) -> list[tuple[MountTarget, MountTarget | None]]:
    """Pair each desired target with the existing one in its subnet, or None."""
    there = {each.subnet: each for each in found if each.state not in LEAVING}
    return [(each, there.get(each.subnet)) for each in wanted]


def in_any_subnet(
    wanted: Iterable[MountTarget], found: Iterable[MountTarget], subnets: Mapping[str, Subnet]
) -> list[MountTarget]:
    """Return the desired targets, moved to the subnet that already has a target in the same zone and VPC.

    :param subnets: subnets of the targets that do not exist, by id.
    """
    wanted = list(wanted)
    named = {each.subnet for each in wanted}
    there = {(each.vpc, each.zone): each.subnet for each in found if each.state not in LEAVING}
    moved = []
    for each in wanted:
        place = subnets.get(each.subnet)
        other = there.get((place.vpc, place.zone), "") if place else ""
        # If that subnet is listed as well, the zone has two targets, which `check` refuses.
        moved.append(replace(each, subnet=other) if other and other not in named else each)
    return moved


def with_others(wanted: Iterable[MountTarget], found: Iterable[MountTarget]) -> list[MountTarget]:
    """Return the desired targets, with their other existing security groups added."""
    return [
        replace(want, security_groups=want.security_groups | (have.security_groups or frozenset()))
        if have and want.security_groups is not None
        else want
        for want, have in pairs(wanted, found)
    ]


def decide(wanted: Sequence[MountTarget], found: Sequence[MountTarget], *, purge: bool = False) -> list[Change]:
    """Return the calls that bring the targets of one file system to the desired state.

    :param purge: delete targets in other subnets before new ones are created.
    :raises TrainyardError: a target differs in a property that AWS cannot change.
    """
    made, changed = [], []
    for want, have in pairs(wanted, found):
        if have is None:
            made.append(_creation(want))
            continue
        if faults := differing(IMMUTABLE, want, have):
            raise TrainyardError(
                f"The mount target {have.id} in {have.subnet} cannot become the wanted one: {'; '.join(faults)}.",
                remedy="Set the existing values. Or delete the target, which breaks its mounts, and create it again.",
                differing=faults,
            )
        if want.security_groups is not None and want.security_groups != have.security_groups:
            groups = sorted(want.security_groups)
            what = f"Give the mount target {have.id} in {have.subnet} the security groups {_named(groups)}"
            parameters = {"MountTargetId": have.id, "SecurityGroups": groups}
            changed.append(Change(what, "efs:ModifyMountTargetSecurityGroups", parameters))
    return [*(removals(wanted, found) if purge else ()), *changed, *made]


def removals(kept: Iterable[MountTarget], found: Iterable[MountTarget]) -> list[Change]:
    """Return the calls that delete all targets except those in the subnets of the kept ones."""
    subnets = {each.subnet for each in kept}
    return [
        Change(
            f"Delete the mount target {each.id} in {each.subnet}",
            "efs:DeleteMountTarget",
            {"MountTargetId": each.id},
            fine=("MountTargetNotFound",),
        )
        for each in found
        if each.subnet not in subnets and each.state not in LEAVING
    ]


def _creation(wanted: MountTarget) -> Change:
    parameters = {
        "SubnetId": wanted.subnet,
        "IpAddress": wanted.ip_address,
        "Ipv6Address": wanted.ipv6_address,
        "IpAddressType": wanted.ip_address_type,
        "SecurityGroups": None if wanted.security_groups is None else sorted(wanted.security_groups),
    }
    said = {name: value for name, value in parameters.items() if value is not None}
    where = f"{wanted.subnet}{f' ({wanted.zone})' if wanted.zone else ''}"
    groups = f", with {_named(said['SecurityGroups'])}" if "SecurityGroups" in said else ""
    return Change(f"Create the mount target in {where}{groups}", "efs:CreateMountTarget", said)


def _named(groups: Sequence[str]) -> str:
    return ", ".join(each or "the new security group" for each in groups) or "none"


def shown(targets: Iterable[MountTarget], wanted: Iterable[MountTarget]) -> dict[str, Any]:
    """Return targets by subnet with the properties that the caller set; empty for targets that were not requested."""
    asked = {each.subnet: each for each in wanted}
    result: dict[str, Any] = {}
    for each in sorted(targets, key=lambda one: one.subnet):
        want = asked.get(each.subnet)
        names = [*IMMUTABLE, "security_groups"]
        said = {name: getattr(each, name) for name in names if want and getattr(want, name) is not None}
        if "security_groups" in said:
            said["security_groups"] = sorted(said["security_groups"] or ())
        result[each.subnet] = said
    return result


def target(wanted: Sequence[MountTarget], found: Sequence[MountTarget], *, purge: bool = False) -> list[MountTarget]:
    """Return the state that the targets will have."""
    subnets = {each.subnet for each in wanted}
    rest = [] if purge else [each for each in found if each.subnet not in subnets and each.state not in LEAVING]
    both = []
    for want, have in pairs(wanted, found):
        said = {name: value for name, value in vars(want).items() if value not in (None, "")}
        both.append(replace(have, **said) if have else want)
    return [*both, *rest]


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
