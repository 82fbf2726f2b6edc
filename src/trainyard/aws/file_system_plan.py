"""Read a file system, and execute the changes that `file_system` decides."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from .changes import OWNER, Change, require_confirmation, require_owner, to_mapping
from .client import AVAILABLE, BUSY, GONE, LEAVING, Aws, AwsError, Patience, State, persist, settle, state_of
from .file_system import LIFECYCLE, FileSystem, check, decide, requires_tls, shown, target

_DNS_SUFFIX = {"cn-": "amazonaws.com.cn"}
"""Prefix of a region -> its DNS suffix, if that is not `amazonaws.com`."""


def find(aws: Aws, *, token: str = "", file_system_id: str = "") -> dict[str, Any] | None:
    """Return the description of a file system by its token or, without one, by its id; None if it does not exist."""
    key = {"CreationToken": token} if token else {"FileSystemId": file_system_id}
    name = f"the file system {token or file_system_id}"
    found = aws.items("efs:DescribeFileSystems", "FileSystems", name, fine=("FileSystemNotFound",), **key)
    return found[0] if found else None


def read(aws: Aws, description: dict[str, Any], wanted: FileSystem) -> FileSystem:
    """Read the state of a file system. Properties with a call of their own are read only if desired."""
    its_id = description["FileSystemId"]

    def ask(operation: str, absent: tuple[str, ...] = ()) -> dict[str, Any]:
        return aws.call(operation, f"the file system {its_id}", fine=absent, FileSystemId=its_id) or {}

    state = FileSystem(
        performance_mode=description["PerformanceMode"],
        throughput_mode=description.get("ThroughputMode", "bursting"),
        provisioned_mibps=description.get("ProvisionedThroughputInMibps"),
        encrypted=description.get("Encrypted", False),
        kms_key_id=description.get("KmsKeyId"),
        availability_zone=description.get("AvailabilityZoneName"),
        tags=to_mapping(description["Tags"]),
    )
    if wanted.lifecycle is not None:
        policies = ask("efs:DescribeLifecycleConfiguration").get("LifecyclePolicies", [])
        ours = {theirs: name for name, theirs in LIFECYCLE.items()}
        state = replace(state, lifecycle={ours[key]: rule for each in policies for key, rule in each.items()})
    if wanted.backup is not None:
        status = ask("efs:DescribeBackupPolicy", ("PolicyNotFound",)).get("BackupPolicy", {}).get("Status", "DISABLED")
        # A transitional state counts as the final one, because AWS completes it by itself.
        state = replace(state, backup=status in ("ENABLED", "ENABLING"))
    if wanted.policy is not None or wanted.require_tls is not None:
        text = ask("efs:DescribeFileSystemPolicy", ("PolicyNotFound",)).get("Policy")
        state = replace(state, policy=json.loads(text) if text else {})
    return state


class FileSystemPlan:
    """One file system, identified by its creation token.

    :param wanted: its desired properties, which must pass `check`.
    :param purge_tags: remove tags that are not desired.
    """

    def __init__(
        self, aws: Aws, token: str, wanted: FileSystem, *, purge_tags: bool = False, patience: Patience | None = None
    ) -> None:
        self._aws, self._token, self._wanted, self._purge = aws, token, wanted, purge_tags
        self._patience = patience or Patience()
        self._id = ""
        self._description: dict[str, Any] | None = None
        self._leaving = False
        self._target = wanted

    def plan(self) -> Plan:
        """Compare and plan the changes.

        :raises TrainyardError: the properties are invalid or cannot be changed, or the file system has another owner.
        """
        check(self._wanted, self._token)
        there = find(self._aws, token=self._token)
        self._leaving = state_of(there) in LEAVING
        found = None
        if there and not self._leaving:
            self._know(there)
            found = self._read(self._wanted)
        if state_of(self._description) == "error":
            raise TrainyardError(
                f"The file system {self._id} of {self._token} is in the state error.",
                remedy="Delete it, or set another token.",
            )
        changes = decide(self._wanted, found, self._token, self._purge)
        self._target = target(self._wanted, found, self._purge)
        return Plan(
            steps=[Step(change.what, partial(self._make, change)) for change in changes],
            before=shown(found, self._wanted),
            after=shown(self._target, self._wanted),
        )

    def settled(self) -> None:
        """Wait until it is available, unless it was at the last observation."""
        if state_of(self._description) != "available":
            settle(self._look, AVAILABLE, self._patience)

    def result(self) -> dict[str, Any]:
        """Return the file system, in check mode as it will be; values unknown before its creation are empty."""
        there = self._description or {}
        region = self._aws.region
        suffix = next((text for start, text in _DNS_SUFFIX.items() if region.startswith(start)), "amazonaws.com")
        return {
            "id": self._id,
            "arn": there.get("FileSystemArn", ""),
            "dns_name": f"{self._id}.efs.{region}.{suffix}" if self._id else "",
            "state": there.get("LifeCycleState", "absent"),
            "creation_token": self._token,
            "requires_tls": requires_tls(self._target.policy or {}),
            **shown(self._target, self._wanted),
        }

    def _know(self, description: dict[str, Any]) -> None:
        self._description, self._id = description, description["FileSystemId"]

    def _look(self) -> dict[str, State]:
        seen = find(self._aws, file_system_id=self._id)
        if seen:
            self._know(seen)
        return {f"The file system {self._id}": state_of(seen)}

    def _make(self, change: Change) -> None:
        if change.operation == "efs:CreateFileSystem":
            self._create(change)
            return
        # AWS accepts no other change during a creation or update.
        self.settled()
        key = "ResourceId" if change.operation in ("efs:TagResource", "efs:UntagResource") else "FileSystemId"
        name = f"the file system {self._id}"
        call = partial(self._aws.call, change.operation, name, **{key: self._id}, **change.parameters)
        # Another run may have started a change after that observation.
        answer = persist(call, (BUSY,), self._patience, self._patience.timeout)
        if change.operation == "efs:UpdateFileSystem" and answer:
            self._know(answer)

    def _create(self, change: Change) -> None:
        name = f"the file system {self._token}"
        if self._leaving:
            settle(lambda: {name: state_of(find(self._aws, token=self._token))}, GONE, self._patience)
        try:
            self._know(self._aws.call(change.operation, name, **change.parameters) or {})
        except AwsError as error:
            if error.code != "FileSystemAlreadyExists":
                raise
            self._adopt(str(error.answer.get("FileSystemId", "")))

    def _adopt(self, file_system_id: str) -> None:
        """Continue with an existing file system of the same token: an earlier call whose answer was lost created it."""
        self._id = file_system_id
        if not self._id:
            settle(lambda: {self._token: self._shown_now()}, AVAILABLE, self._patience)
        settle(self._look, AVAILABLE, self._patience)
        # The following steps set these two in any case.
        rest = replace(self._wanted, lifecycle=None, policy=None, require_tls=None)
        for change in decide(rest, self._read(rest), self._token, self._purge):
            self._make(change)

    def _read(self, wanted: FileSystem) -> FileSystem:
        """Read the existing file system, which is adopted only if it has the desired owner tag.

        :raises TrainyardError: it has another owner tag, or none.
        """
        found = read(self._aws, self._description or {}, wanted)
        if owner := (wanted.tags or {}).get(OWNER):
            require_owner(f"The file system {self._id} of the token {self._token}", found.tags or {}, owner)
        return found

    def _shown_now(self) -> State:
        seen = find(self._aws, token=self._token)
        if seen:
            self._know(seen)
        return state_of(seen)


class FileSystemRemoval:
    """The removal of one file system with all its data.

    :param confirm: its id, repeated as a confirmation.
    :param token: its creation token, if the caller knows it.
    """

    def __init__(self, aws: Aws, file_system_id: str, confirm: str, *, token: str = "", patience: Patience) -> None:
        require_confirmation(file_system_id, confirm, "The file system")
        self._aws, self._id, self._token, self._patience = aws, file_system_id, token, patience
        self._name = f"the file system {file_system_id}"
        self._state: State = None

    def plan(self) -> Plan:
        """Plan the deletion; no step if the file system does not exist.

        :raises TrainyardError: the file system has another token.
        """
        there = find(self._aws, file_system_id=self._id)
        if there and self._token and there["CreationToken"] != self._token:
            raise TrainyardError(
                f"The file system {self._id} has the token {there['CreationToken']}, not {self._token}.",
                remedy="Set the id of the intended file system.",
            )
        self._state = state_of(there)
        if there is None or self._state in LEAVING:
            return Plan()
        token, size = there["CreationToken"], there["SizeInBytes"]["Value"]
        before = {"id": self._id, "creation_token": token, "bytes": size}
        return Plan([Step(f"Delete {self._name} of {token} with all that is in it", self._delete)], before, {})

    def settled(self) -> None:
        """Wait until AWS no longer lists it."""
        if self._state is not None:
            settle(lambda: {self._name: state_of(find(self._aws, file_system_id=self._id))}, GONE, self._patience)

    def _delete(self) -> None:
        done = ("FileSystemNotFound",)
        call = partial(self._aws.call, "efs:DeleteFileSystem", self._name, fine=done, FileSystemId=self._id)
        # Deleted mount targets may still count for some seconds.
        persist(call, ("FileSystemInUse",), self._patience)
