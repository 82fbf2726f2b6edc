"""An AWS change as data: the single API call that makes it, so that plans can be compared without making calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import TrainyardError


@dataclass(frozen=True)
class Change:
    """One write.

    :param what: imperative sentence for the user.
    :param operation: service and name of the call, such as `efs:TagResource`.
    :param parameters: parameters of the call. The IDs of resources that the plan creates are added at call time.
    :param fine: AWS error codes which mean that the change is already done.
    """

    what: str
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fine: tuple[str, ...] = ()


def differing(names: Sequence[str], wanted: object, found: object) -> list[str]:
    """Return the properties whose desired and observed values differ, each as `property is X, not Y`.

    :param names: names of the properties; a desired value of None is ignored.
    """
    pairs = [(name, getattr(wanted, name), getattr(found, name)) for name in names]
    return [
        f"{name} is {'none' if have in (None, '') else have}, not {want}"
        for name, want, have in pairs
        if want is not None and want != have
    ]


def require_confirmation(file_system_id: str, confirm: str, what: str) -> None:
    """Refuse a deletion that the caller has not confirmed.

    :raises TrainyardError: the confirmation is not the id of the file system.
    """
    if not file_system_id or confirm != file_system_id:
        raise TrainyardError(
            f"{what} of {file_system_id or 'no file system'} is not deleted: the confirmation is "
            f"{confirm or 'empty'}, not its id.",
            remedy="Set the confirmation to the id of the file system. The deletion cannot be undone.",
        )


def require_file_system(file_system_id: str, check_mode: bool) -> None:
    """Refuse an empty file system id, except in check mode, which may plan for a future file system.

    :raises TrainyardError: the id is empty.
    """
    if not file_system_id and not check_mode:
        raise TrainyardError(
            "file_system_id is empty.", remedy="Create the file system first. It may be empty only in check mode."
        )
