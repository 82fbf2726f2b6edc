"""What moto 5.2.5 does not do, as AWS documents it: states on the way, calls that it lacks, addresses of both families.

Each operation with a method of its name here is answered by it; every other one is answered by moto alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.aws.model import Answer, Call, failure, operation, prune, success

Forward = Callable[[Call, dict[str, Any]], Answer]
"""Sends a call with these parameters to moto."""

IDS = {"FileSystems": "FileSystemId", "MountTargets": "MountTargetId", "AccessPoints": "AccessPointId"}
NEEDS_AVAILABLE = {
    *("CreateMountTarget", "CreateAccessPoint", "PutLifecycleConfiguration", "PutFileSystemPolicy"),
    *("PutBackupPolicy", "UpdateFileSystem", "DeleteFileSystemPolicy"),
}
"""Calls that AWS refuses while the file system is on the way to a state."""


class Gaps:
    """AWS's behaviour above one moto.

    :param forward: asks moto.
    """

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self.hidden = self.creating = self.updating = self.deleting = 0
        """Looks in which something new is not shown, then is creating; changed is updating; deleted is deleting."""
        self.lagging: tuple[str, ...] = ()
        """States in which something deleted is shown before it is deleting."""
        self.page = 0
        """Elements of a list in one answer; 0 for all."""
        self._states: dict[str, list[str | None]] = {}
        self._doomed: dict[str, Call] = {}
        self._more: dict[str, dict[str, Any]] = {}
        self._backups: dict[str, list[str]] = {}
        self._no_policy: set[str] = set()

    def answer(self, call: Call) -> Answer:
        """The answer to a call of EFS."""
        file_system = call.parameters.get("FileSystemId", "")
        waiting = [state for state in self._states.get(file_system, []) if state in ("creating", "updating")]
        if call.operation in NEEDS_AVAILABLE and waiting:
            self._states[file_system].pop(0)
            return failure(call, "IncorrectFileSystemLifeCycleState", f"{file_system} is {waiting[0]}")
        own = getattr(self, f"_{call.operation}", None)
        return own(call) if own else self._moto(call)

    def shows(self, its_id: str, *states: str | None) -> None:
        """Say what the next looks at one thing show of it, before they show how it is."""
        self._states[its_id] = list(states)

    def _moto(self, call: Call, **changed: Any) -> Answer:
        answer = self._forward(call, {**call.parameters, **changed})
        if answer.status >= 300:
            found = json.loads(answer.body or b"{}")
            code = str(answer.headers.get("x-amzn-errortype") or found.get("__type") or found.get("code") or "").split(
                "#"
            )[-1]
            return failure(call, code, str(found.get("message") or found.get("Message")))
        model = operation(call)
        content = prune(model.output_shape, json.loads(answer.body)) if model.output_shape and answer.body else {}
        return success(call, content)

    def _content(self, call: Call, name: str, **parameters: Any) -> dict[str, Any]:
        """What moto has, asked beside the call."""
        answer = self._moto(Call(call.service, name, parameters, headers=call.headers))
        return json.loads(answer.body) if answer.status < 300 else {}

    def _CreateFileSystem(self, call: Call) -> Answer:
        token = call.parameters["CreationToken"]
        there = self._content(call, "DescribeFileSystems", CreationToken=token).get("FileSystems")
        if there:
            its_id = there[0]["FileSystemId"]
            return failure(call, "FileSystemAlreadyExists", f"{token} is {its_id}", FileSystemId=its_id)
        return self._made(call, "FileSystemId")

    def _CreateMountTarget(self, call: Call) -> Answer:
        answer = self._made(call, "MountTargetId")
        kind = call.parameters.get("IpAddressType", "IPV4_ONLY")
        if answer.status < 300 and kind != "IPV4_ONLY":
            made = json.loads(answer.body)
            address = call.parameters.get("Ipv6Address", f"2001:db8::{len(self._more) + 1:x}")
            more = {"Ipv6Address": address, **({"IpAddress": None} if kind == "IPV6_ONLY" else {})}
            self._more[made["MountTargetId"]] = more
            return success(call, prune(operation(call).output_shape, made | more))
        return answer

    def _ModifyMountTargetSecurityGroups(self, call: Call) -> Answer:
        states = self._states.get(call.parameters["MountTargetId"])
        if states:
            return failure(call, "IncorrectMountTargetState", f"It is {states.pop(0)}.")
        return self._moto(call)

    def _CreateAccessPoint(self, call: Call) -> Answer:
        file_system, token = call.parameters["FileSystemId"], call.parameters["ClientToken"]
        there = self._content(call, "DescribeAccessPoints", FileSystemId=file_system).get("AccessPoints", [])
        same = [each["AccessPointId"] for each in there if each["ClientToken"] == token]
        if same:
            return failure(call, "AccessPointAlreadyExists", f"{token} is {same[0]}", AccessPointId=same[0])
        return self._made(call, "AccessPointId")

    def _made(self, call: Call, key: str) -> Answer:
        answer = self._moto(call)
        if answer.status >= 300:
            return answer
        made = json.loads(answer.body)
        self._states[made[key]] = [None] * self.hidden + ["creating"] * self.creating
        if self.creating or self.hidden:
            made["LifeCycleState"] = "creating"
        return success(call, made)

    def _UpdateFileSystem(self, call: Call) -> Answer:
        its_id = call.parameters["FileSystemId"]
        amount = call.parameters.get("ProvisionedThroughputInMibps")
        self._more[its_id] = {
            "ThroughputMode": call.parameters["ThroughputMode"], "ProvisionedThroughputInMibps": amount
        }  # fmt: skip
        (found,) = self._content(call, "DescribeFileSystems", FileSystemId=its_id)["FileSystems"]
        self._states[its_id] = ["updating"] * self.updating
        state = {"LifeCycleState": "updating" if self.updating else "available"}
        return success(call, prune(operation(call).output_shape, {**found, **self._more[its_id], **state}))

    def _PutBackupPolicy(self, call: Call) -> Answer:
        status = call.parameters["BackupPolicy"]["Status"]
        self._backups[call.parameters["FileSystemId"]] = [f"{status.removesuffix('ED')}ING", status]
        return success(call, {"BackupPolicy": {"Status": f"{status.removesuffix('ED')}ING"}})

    def _DescribeBackupPolicy(self, call: Call) -> Answer:
        shown = self._backups.get(call.parameters["FileSystemId"])
        if not shown:
            return self._moto(call)
        return success(call, {"BackupPolicy": {"Status": shown.pop(0) if len(shown) > 1 else shown[0]}})

    def _DeleteFileSystemPolicy(self, call: Call) -> Answer:
        self._no_policy.add(call.parameters["FileSystemId"])
        return success(call, {})

    def _PutFileSystemPolicy(self, call: Call) -> Answer:
        self._no_policy.discard(call.parameters["FileSystemId"])
        return self._moto(call)

    def _DescribeFileSystemPolicy(self, call: Call) -> Answer:
        if call.parameters["FileSystemId"] in self._no_policy:
            return failure(call, "PolicyNotFound", "There is no policy.")
        return self._moto(call)

    def _DeleteFileSystem(self, call: Call) -> Answer:
        return self._delete(call, "FileSystemId")

    def _DeleteMountTarget(self, call: Call) -> Answer:
        return self._delete(call, "MountTargetId")

    def _DeleteAccessPoint(self, call: Call) -> Answer:
        return self._delete(call, "AccessPointId")

    def _delete(self, call: Call, key: str) -> Answer:
        its_id = call.parameters[key]
        if not self.deleting:
            return self._moto(call)
        there = self._content(call, "DescribeMountTargets", FileSystemId=its_id) if key == "FileSystemId" else {}
        if there.get("MountTargets"):
            return failure(call, "FileSystemInUse", f"{its_id} has mount targets")
        self._doomed[its_id] = call
        self._states[its_id] = [*self.lagging, *["deleting"] * self.deleting]
        return success(call, {})

    def _DescribeFileSystems(self, call: Call) -> Answer:
        return self._list(call, "FileSystems", "Marker", "NextMarker", "MaxItems")

    def _DescribeMountTargets(self, call: Call) -> Answer:
        return self._list(call, "MountTargets", "Marker", "NextMarker", "MaxItems")

    def _DescribeAccessPoints(self, call: Call) -> Answer:
        return self._list(call, "AccessPoints", "NextToken", "NextToken", "MaxResults")

    def _list(self, call: Call, key: str, marker: str, following: str, size: str) -> Answer:
        start = int(call.parameters.pop(marker, "0"))
        for its_id in [each for each in self._doomed if not self._states.get(each)]:
            self._moto(self._doomed.pop(its_id))
        answer = self._moto(call, **{size: 1000})
        if answer.status >= 300:
            return answer
        found = [shown for each in json.loads(answer.body)[key] if (shown := self._shown(each, each[IDS[key]]))]
        end = start + self.page if self.page else len(found)
        content = {key: found[start:end], **({following: str(end)} if end < len(found) else {})}
        return success(call, prune(operation(call).output_shape, content))

    def _shown(self, description: dict[str, Any], its_id: str) -> dict[str, Any] | None:
        states = self._states.get(its_id)
        state = states.pop(0) if states else description["LifeCycleState"]
        return {**description, **self._more.get(its_id, {}), "LifeCycleState": state} if state else None
