"""The security group of mount targets: NFS from the nodes and nothing else that this knows of."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import TrainyardError
from .changes import Change
from .tags import OWNER, require_owner, tag_changes, to_list, to_mapping, wanted_tags

NFS_PORT = 2049

_LISTS = {
    "group": ("UserIdGroupPairs", "GroupId"),
    "ipv4": ("IpRanges", "CidrIp"),
    "ipv6": ("Ipv6Ranges", "CidrIpv6"),
    "prefix list": ("PrefixListIds", "PrefixListId"),
}
"""Kind of a source -> the list of EC2 that it stands in, and its key there."""


@dataclass(frozen=True, order=True)
class Rule:
    """One source that may connect, as EC2 keeps it.

    :param ports: `tcp 2049`, for one.
    :param kind: key of `_LISTS`.
    :param source: id of a group or list, or a network.
    """

    ports: str
    kind: str
    source: str

    def __str__(self) -> str:
        return f"{self.ports} from {self.source}"


@dataclass(frozen=True)
class SecurityGroup:
    """A security group as it is there.

    :param rules: of what comes in; each with the permission of EC2 that it is part of, to take it away again.
    """

    id: str
    name: str
    vpc: str
    tags: Mapping[str, str]
    rules: Mapping[Rule, Mapping[str, Any]]


def observed(description: Mapping[str, Any]) -> SecurityGroup:
    """A security group as EC2 describes it."""
    rules = {}
    for permission in description.get("IpPermissions", []):
        protocol, first, last = permission["IpProtocol"], permission.get("FromPort"), permission.get("ToPort")
        span = "" if first is None or first == -1 else f" {first}" if first == last else f" {first}-{last}"
        ports = "everything" if protocol == "-1" else f"{protocol}{span}"
        base = {name: permission[name] for name in ("IpProtocol", "FromPort", "ToPort") if name in permission}
        for kind, (several, key) in _LISTS.items():
            for each in permission.get(several, []):
                rules[Rule(ports, kind, each[key])] = {**base, several: [dict(each)]}
    return SecurityGroup(
        id=description["GroupId"],
        name=description["GroupName"],
        vpc=description.get("VpcId", ""),
        tags=to_mapping(description.get("Tags")),
        rules=rules,
    )


def rules_of(sources: Iterable[str]) -> list[Rule]:
    """The rules for NFS from some sources.

    :raises TrainyardError: a source is neither the id of a group nor a network.
    """
    found = set()
    for source in sources:
        if source.startswith("sg-"):
            found.add(Rule(f"tcp {NFS_PORT}", "group", source))
            continue
        try:
            network = ipaddress.ip_network(source)
        except ValueError:
            raise TrainyardError(
                f"The source {source} is neither the id of a security group nor a network.",
                remedy="Write sg-0123456789abcdef0, 10.1.0.0/16 or 2001:db8::/56; a network has no bits of a host.",
            ) from None
        if network.prefixlen == 0:
            raise TrainyardError(
                f"The source {source} is the whole internet.", remedy="Name the nodes' security groups or networks."
            )
        found.add(Rule(f"tcp {NFS_PORT}", f"ipv{network.version}", str(network)))
    return sorted(found)


def require_ours(group: SecurityGroup, owner: str) -> None:
    """Refuse a group that was not made for this owner.

    :raises TrainyardError: names what its tag says.
    """
    require_owner(f"The security group {group.name} ({group.id}) of {group.vpc}", group.tags, owner)


def target_tags(
    wanted: Mapping[str, str] | None, found: SecurityGroup | None, owner: str, purge: bool
) -> dict[str, str]:
    """The tags that the group will have; its owner is one of them."""
    if found and wanted is None:
        return dict(found.tags)
    return wanted_tags({**(wanted or {}), OWNER: owner}, found.tags if found else {}, purge)


@dataclass(frozen=True)
class Wanted:
    """A security group as it is wanted.

    :param rules: None leaves those that are there alone.
    :param purge_rules: other rules for what comes in go.
    """

    name: str
    owner: str
    description: str
    rules: Sequence[Rule] | None = None
    purge_rules: bool = False
    tags: Mapping[str, str] | None = None
    purge_tags: bool = False


def decide(wanted: Wanted, found: SecurityGroup | None, vpc: str) -> list[Change]:
    """The calls that bring the group from how it is to how it is wanted; what goes out is left alone.

    :raises TrainyardError: a group of this name was made by somebody else.
    """
    changes = []
    tags = target_tags(wanted.tags, found, wanted.owner, wanted.purge_tags)
    if found is None:
        parameters = {
            "GroupName": wanted.name,
            "Description": wanted.description,
            "VpcId": vpc,
            "TagSpecifications": [{"ResourceType": "security-group", "Tags": to_list(tags)}],
        }
        changes.append(
            Change(f"Create the security group {wanted.name} in {vpc}", "ec2:CreateSecurityGroup", parameters)
        )
    else:
        require_ours(found, wanted.owner)
    there = found.rules if found else {}
    # A call for each: EC2 refuses one as a whole when another run has just added a part of it.
    for rule in wanted.rules or ():
        if rule not in there:
            permissions = {"IpPermissions": [_permission(rule)]}
            fine = ("InvalidPermission.Duplicate",)
            changes.append(Change(f"Allow {rule}", "ec2:AuthorizeSecurityGroupIngress", permissions, fine))
    stale = sorted(set(there) - set(wanted.rules or ())) if wanted.purge_rules and wanted.rules is not None else []
    if stale:
        what = f"Allow no more {', '.join(map(str, stale))}"
        permissions = {"IpPermissions": [dict(there[rule]) for rule in stale]}
        fine = ("InvalidPermission.NotFound",)
        changes.append(Change(what, "ec2:RevokeSecurityGroupIngress", permissions, fine))
    return [*changes, *(tag_changes(found.tags, tags, ec2=True) if found else ())]


def _permission(rule: Rule) -> dict[str, Any]:
    several, key = _LISTS[rule.kind]
    source = {key: rule.source, "Description": "NFS"}
    return {"IpProtocol": "tcp", "FromPort": NFS_PORT, "ToPort": NFS_PORT, several: [source]}
