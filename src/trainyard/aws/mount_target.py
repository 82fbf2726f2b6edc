"""Mount targets of a file system, one per zone: desired state, observed state, and the calls to reconcile them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from ..core.errors import TrainyardError
from .changes import Change, differing
from .states import LEAVING

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
