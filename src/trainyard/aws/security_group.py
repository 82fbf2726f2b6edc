"""The security group of mount targets, which allows NFS from the nodes."""

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
"""Kind of a source -> its list in an EC2 permission, and its key in that list."""


@dataclass(frozen=True, order=True)
class Rule:
    """One permitted source, as EC2 stores it.

    :param ports: protocol and ports, such as `tcp 2049`.
    :param kind: key of `_LISTS`.
    :param source: id of a group or prefix list, or a network.
    """

    ports: str
    kind: str
    source: str

    def __str__(self) -> str:
        return f"{self.ports} from {self.source}"


@dataclass(frozen=True)
class SecurityGroup:
    """An existing security group.

    :param rules: ingress rules -> the EC2 permission that contains the rule, for its removal.
    """

    id: str
    name: str
    vpc: str
    tags: Mapping[str, str]
    rules: Mapping[Rule, Mapping[str, Any]]


def observed(description: Mapping[str, Any]) -> SecurityGroup:
    """Convert a security group description of EC2."""
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
    """Return the rules that allow NFS from the sources.

    :raises TrainyardError: a source is neither the id of a group nor a network, or is the whole internet.
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
                remedy="Set a source such as sg-0123456789abcdef0, 10.1.0.0/16 or 2001:db8::/56, without host bits.",
            ) from None
        if network.prefixlen == 0:
            raise TrainyardError(
                f"The source {source} is the whole internet.", remedy="Set the nodes' security groups or networks."
            )
        found.add(Rule(f"tcp {NFS_PORT}", f"ipv{network.version}", str(network)))
    return sorted(found)


def require_ours(group: SecurityGroup, owner: str) -> None:
    """Refuse a group that was not created for this owner.

    :raises TrainyardError: the owner tag differs; the message contains its value.
    """
    require_owner(f"The security group {group.name} ({group.id}) of {group.vpc}", group.tags, owner)


def target_tags(
    wanted: Mapping[str, str] | None, found: SecurityGroup | None, owner: str, purge: bool
) -> dict[str, str]:
    """Return the tags that the group will have; its owner is one of them."""
    if found and wanted is None:
        return dict(found.tags)
    return wanted_tags({**(wanted or {}), OWNER: owner}, found.tags if found else {}, purge)


@dataclass(frozen=True)
class Wanted:
    """A desired security group.

    :param rules: ingress rules; None keeps the existing ones.
    :param purge_rules: remove other ingress rules.
    """

    name: str
    owner: str
    description: str
    rules: Sequence[Rule] | None = None
    purge_rules: bool = False
    tags: Mapping[str, str] | None = None
    purge_tags: bool = False


def decide(wanted: Wanted, found: SecurityGroup | None, vpc: str) -> list[Change]:
    """Return the calls that bring the group to the desired state; egress rules are not managed.

    :raises TrainyardError: a group of this name was created for another owner.
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
    # One call per rule: EC2 refuses a whole call if another run has just added one of its rules.
    for rule in wanted.rules or ():
        if rule not in there:
            permissions = {"IpPermissions": [_permission(rule)]}
            fine = ("InvalidPermission.Duplicate",)
            changes.append(Change(f"Allow {rule}", "ec2:AuthorizeSecurityGroupIngress", permissions, fine))
    stale = sorted(set(there) - set(wanted.rules or ())) if wanted.purge_rules and wanted.rules is not None else []
    if stale:
        what = f"No longer allow {', '.join(map(str, stale))}"
        permissions = {"IpPermissions": [dict(there[rule]) for rule in stale]}
        fine = ("InvalidPermission.NotFound",)
        changes.append(Change(what, "ec2:RevokeSecurityGroupIngress", permissions, fine))
    return [*changes, *(tag_changes(found.tags, tags, ec2=True) if found else ())]


def _permission(rule: Rule) -> dict[str, Any]:
    several, key = _LISTS[rule.kind]
    source = {key: rule.source, "Description": "NFS"}
    return {"IpProtocol": "tcp", "FromPort": NFS_PORT, "ToPort": NFS_PORT, several: [source]}
