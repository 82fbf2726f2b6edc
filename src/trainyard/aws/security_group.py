"""The security group of mount targets, which allows NFS from the nodes.

Parts: desired state, observed state, and the calls to reconcile them; the plan; the removal. The plan reads the group,
and executes the changes that `decide` returns.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from ..core.waiter import wait_until
from .changes import OWNER, Change, require_owner, tag_changes, to_list, to_mapping, wanted_tags
from .client import Aws, AwsError, Patience, persist
from .mount_target import find_subnets

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


_UNKNOWN = ("InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound")
"""EC2's error codes for a group that does not exist, or is not visible yet."""


def find(aws: Aws, name: str = "", vpc: str = "", owner: str = "") -> list[SecurityGroup]:
    """Return the security groups of this name, VPC and owner; an empty value matches any."""
    filters = {"group-name": name, "vpc-id": vpc, f"tag:{OWNER}": owner}
    found = aws.items(
        "ec2:DescribeSecurityGroups",
        "SecurityGroups",
        f"the security group {name or owner}{f' in {vpc}' if vpc else ''}",
        Filters=[{"Name": key, "Values": [value]} for key, value in filters.items() if value],
    )
    return [observed(each) for each in found]


def vpc_of(aws: Aws, subnets: Sequence[str]) -> str:
    """Return the VPC of the subnets.

    :raises TrainyardError: they are in several VPCs.
    """
    found = find_subnets(aws, subnets)
    vpcs = sorted({each.vpc for each in found.values()})
    if len(vpcs) != 1:
        said = ", ".join(f"{each.id} in {each.vpc}" for each in found.values())
        raise TrainyardError(
            f"The subnets are in several VPCs: {said}.",
            remedy="Set subnets of only one VPC, because a file system has mount targets in one VPC.",
        )
    return vpcs[0]


class SecurityGroupPlan:
    """One security group, identified by its name in its VPC."""

    def __init__(self, aws: Aws, wanted: Wanted, vpc: str, patience: Patience) -> None:
        self._aws, self._wanted, self._vpc, self._patience = aws, wanted, vpc, patience
        self._group: SecurityGroup | None = None
        self._id = ""

    def plan(self) -> Plan:
        """Compare and plan the changes.

        :raises TrainyardError: a group of this name was created for another owner.
        """
        wanted = self._wanted
        found = self._group = next(iter(find(self._aws, wanted.name, self._vpc)), None)
        self._id = found.id if found else ""
        changes = decide(wanted, found, self._vpc)
        return Plan(
            steps=[Step(change.what, partial(self._make, change)) for change in changes],
            before=self._shown(found) if found else {},
            after=self._after(found),
        )

    def result(self) -> dict[str, Any]:
        """Return the group, in check mode as it will be; its id is empty before its creation."""
        return {"id": self._id, "name": self._wanted.name, "vpc_id": self._vpc}

    def _shown(self, group: SecurityGroup) -> dict[str, Any]:
        shown: dict[str, Any] = {"name": group.name, "vpc_id": group.vpc}
        if self._wanted.rules is not None:
            shown["allows"] = sorted(map(str, group.rules))
        return shown | ({"tags": dict(group.tags)} if self._wanted.tags is not None else {})

    def _after(self, found: SecurityGroup | None) -> dict[str, Any]:
        wanted = self._wanted
        rules = {str(rule) for rule in wanted.rules or ()}
        if found and not wanted.purge_rules:
            rules |= {str(rule) for rule in found.rules}
        shown: dict[str, Any] = {"name": wanted.name, "vpc_id": self._vpc}
        if wanted.rules is not None:
            shown["allows"] = sorted(rules)
        tags = target_tags(wanted.tags, found, wanted.owner, wanted.purge_tags)
        return shown | ({"tags": tags} if wanted.tags is not None else {})

    def _make(self, change: Change) -> None:
        name = f"the security group {self._wanted.name} in {self._vpc}"
        if change.operation == "ec2:CreateSecurityGroup":
            try:
                made = self._aws.call(change.operation, name, **change.parameters)
                self._id = (made or {})["GroupId"]
            except AwsError as error:
                if error.code != "InvalidGroup.Duplicate":
                    raise
                self._adopt()
            return
        key: dict[str, Any] = {"GroupId": self._id}
        if change.operation in ("ec2:CreateTags", "ec2:DeleteTags"):
            key = {"Resources": [self._id]}
        call = partial(self._aws.call, change.operation, name, fine=change.fine, **key, **change.parameters)
        persist(call, _UNKNOWN, self._patience)

    def _adopt(self) -> None:
        """Continue with an existing group that was not listed before: a call whose answer was lost created it."""
        found = wait_until(
            lambda: find(self._aws, self._wanted.name, self._vpc),
            bool,
            what=f"EC2 to show the security group {self._wanted.name}",
            timeout=self._patience.timeout,
            interval=self._patience.interval,
            clock=self._patience.clock,
        )
        require_ours(found[0], self._wanted.owner)
        self._id = found[0].id


class SecurityGroupRemoval:
    """The removal of the security groups of one name and owner: one in each VPC that the site has used.

    :param vpc: empty for all VPCs.
    """

    def __init__(self, aws: Aws, name: str, owner: str, vpc: str, patience: Patience) -> None:
        self._aws, self._name, self._owner, self._vpc, self._patience = aws, name, owner, vpc, patience

    def plan(self) -> Plan:
        """Plan the deletion; no steps if no group exists.

        :raises TrainyardError: the group in the VPC was created for another owner.
        """
        found = find(self._aws, self._name, self._vpc, "" if self._vpc else self._owner)
        steps = []
        for group in found:
            require_ours(group, self._owner)
            what = f"Delete the security group {group.name} ({group.id}) of {group.vpc}"
            steps.append(Step(what, partial(self._delete, group)))
        vpcs = sorted(each.vpc for each in found)
        return Plan(steps, {"name": self._name, "vpc_ids": vpcs} if found else {}, {})

    def _delete(self, group: SecurityGroup) -> None:
        name = f"the security group {group.name} ({group.id})"
        fine = _UNKNOWN
        call = partial(self._aws.call, "ec2:DeleteSecurityGroup", name, fine=fine, GroupId=group.id)
        # The network interfaces of deleted mount targets still use the group for a while.
        persist(call, ("DependencyViolation",), self._patience, self._patience.timeout)
