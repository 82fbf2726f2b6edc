"""Read the security group of mount targets, and execute the changes that `security_group` decides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from ..core.waiter import wait_until
from .changes import Change
from .client import Aws, Patience, persist
from .errors import AwsError
from .mount_target_plan import find_subnets
from .security_group import OWNER, SecurityGroup, Wanted, decide, observed, require_ours, target_tags

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
