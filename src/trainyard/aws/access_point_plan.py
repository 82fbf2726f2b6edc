"""Read the access points of a file system, and execute the changes that `access_point` decides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core.plan import Plan, Step
from .access_point import AccessPoint, check, decide, observed, pairs, shown, target_tags
from .changes import Change
from .client import BUSY, Aws, Patience, persist
from .errors import AwsError
from .states import AVAILABLE, GONE, LEAVING, Goal, State, settle


def find(aws: Aws, file_system_id: str) -> list[AccessPoint]:
    """Return all access points of a file system; empty if the file system does not exist."""
    name = f"the file system {file_system_id}"
    found = aws.items(
        "efs:DescribeAccessPoints", "AccessPoints", name, fine=("FileSystemNotFound",), FileSystemId=file_system_id
    )
    return [observed(each) for each in found]


class AccessPointsPlan:
    """The access points of one file system.

    :param file_system_id: only in check mode, empty for a file system that does not exist yet.
    :param wanted: the desired access points; None removes all.
    :param purge: also delete access points that are not desired.
    """

    def __init__(
        self,
        aws: Aws,
        file_system_id: str,
        wanted: Sequence[AccessPoint] | None,
        *,
        purge: bool = False,
        purge_tags: bool = False,
        patience: Patience,
    ) -> None:
        self._aws, self._id, self._patience = aws, file_system_id, patience
        self._wanted = list(wanted or ())
        self._purge, self._purge_tags = purge or wanted is None, purge_tags
        self._found: list[AccessPoint] = []
        self._stale = False

    def plan(self) -> Plan:
        """Compare and plan the changes.

        :raises TrainyardError: EFS would refuse an access point, or cannot change an existing one.
        """
        check(self._wanted)
        found = self._found = find(self._aws, self._id) if self._id else []
        changes = decide(self._id, self._wanted, found, purge=self._purge, purge_tags=self._purge_tags)
        staying, going = self._pairs(), [each for each in self._others() if self._purge]
        before = {have.name: self._shown(want, have, have.tags) for want, have in staying if have}
        after = {}
        for want, have in staying:
            after[want.name] = self._shown(want, have or want, target_tags(want, have, self._purge_tags))
        before |= {each.name or each.id: shown(each, None) for each in going if each.state not in LEAVING}
        return Plan([Step(each.what, partial(self._make, each)) for each in changes], before, after)

    def settled(self) -> None:
        """Wait until the desired access points are available, and the deleted ones are gone."""
        self._wait([want.name for want, _ in self._pairs()], AVAILABLE)
        if self._purge:
            self._wait([], GONE)

    def result(self) -> list[dict[str, Any]]:
        """Return the access points, in check mode as they will be; values that AWS has not chosen yet are empty."""
        return [
            {
                "name": want.name,
                "id": have.id if have else "",
                "arn": have.arn if have else "",
                "volume_handle": f"{self._id}::{have.id}" if have else "",
                "path": want.path,
                "state": have.state if have else "absent",
            }
            for want, have in self._pairs()
        ]

    def _pairs(self) -> list[tuple[AccessPoint, AccessPoint | None]]:
        return pairs(self._id, self._wanted, self._found)

    def _others(self) -> list[AccessPoint]:
        ours = {have.id for _, have in self._pairs() if have}
        return [each for each in self._found if each.id not in ours]

    def _shown(self, want: AccessPoint, state: AccessPoint, tags: Any) -> dict[str, Any]:
        asked = AccessPoint(
            want.name, state.user if want.user else None, state.path, state.creation if want.creation else None
        )
        return shown(asked, tags if want.tags is not None else None)

    def _wait(self, names: Sequence[str], goal: Goal) -> None:
        if not self._stale and all(state in goal.reached for state in self._states(names, goal).values()):
            return

        def look() -> dict[str, State]:
            self._found, self._stale = find(self._aws, self._id), False
            return self._states(names, goal)

        settle(look, goal, self._patience)

    def _states(self, names: Sequence[str], goal: Goal) -> dict[str, State]:
        if goal is GONE:
            return {f"the access point {each.id}": each.state for each in self._others()}
        return {
            f"the access point {want.name}": have.state if have else None
            for want, have in self._pairs()
            if want.name in names
        }

    def _make(self, change: Change) -> None:
        self._stale = True
        parameters = dict(change.parameters)
        name = f"{parameters.get('AccessPointId') or parameters.get('ResourceId') or 'an access point'} of {self._id}"
        if change.operation != "efs:CreateAccessPoint":
            self._aws.call(change.operation, name, fine=change.fine, **parameters)
            return
        try:
            call = partial(self._aws.call, change.operation, name, FileSystemId=self._id, **parameters)
            persist(call, (BUSY,), self._patience)
        except AwsError as error:
            # An earlier call whose answer was lost created it. The next run compares it like any existing one.
            if error.code != "AccessPointAlreadyExists":
                raise
