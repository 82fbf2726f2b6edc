"""A change of AWS as data: the one call that makes it, so that a plan can be compared without making any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import TrainyardError


@dataclass(frozen=True)
class Change:
    """One write.

    :param what: imperative sentence for the user.
    :param operation: service and name of the call, `efs:TagResource`.
    :param parameters: of the call; the id of what the plan itself makes is added when the call is made.
    :param fine: codes of errors by which AWS says that it is done already.
    """

    what: str
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fine: tuple[str, ...] = ()


def differing(names: Sequence[str], wanted: object, found: object) -> list[str]:
    """What is wanted otherwise than it is, each as `property is X, not Y`.

    :param names: of the properties; what is wanted as None is left alone.
    """
    pairs = [(name, getattr(wanted, name), getattr(found, name)) for name in names]
    return [
        f"{name} is {'none' if have in (None, '') else have}, not {want}"
        for name, want, have in pairs
        if want is not None and want != have
    ]


def require_confirmation(file_system_id: str, confirm: str, what: str) -> None:
    """Refuse to delete what the caller has not named a second time.

    :raises TrainyardError: the confirmation is not the id of the file system.
    """
    if not file_system_id or confirm != file_system_id:
        raise TrainyardError(
            f"{what} of {file_system_id or 'no file system'} is not deleted: the confirmation is "
            f"{confirm or 'empty'}, not its id.",
            remedy="Give the id of the file system as the confirmation; what is deleted does not come back.",
        )


def require_file_system(file_system_id: str, check_mode: bool) -> None:
    """Refuse to change what belongs to no file system; check mode may plan for one that is not there yet.

    :raises TrainyardError: there is no id.
    """
    if not file_system_id and not check_mode:
        raise TrainyardError(
            "file_system_id is empty.", remedy="Make the file system first; empty is for check mode before that."
        )
