"""Bounds what one host may answer to one task: Ansible reads an answer of any size, and other hosts wait meanwhile.

An answer of 20 MB in short lines takes Ansible more than 100 s and 360 MB, and a difference of 200,000 lines on both
sides much longer. Ansible has no setting for either.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: host_answers
type: aggregate
short_description: Bound the answers of hosts
description:
  - Where a host answers a task by SSH with more than 8 MiB, it is not reached, and a message says so.
  - A difference of more than 5,000 lines is not shown; the result itself keeps it.
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import connection_loader

MOST_BYTES = 2**23
"""Limit of one answer; the largest of the project is the plan of a manifest: each object before and after."""
MOST_LINES = 5_000
"""Limit for both sides of a difference: with the slowest lines, Python compares that many in some seconds."""


def bounded(run: Callable[..., tuple[int, bytes, bytes]]) -> Callable[..., tuple[int, bytes, bytes]]:
    """The method of a connection that runs a command, with an error where the command says too much."""

    def exec_command(connection: Any, *arguments: Any, **options: Any) -> tuple[int, bytes, bytes]:
        code, said, error = run(connection, *arguments, **options)
        size = len(said) + len(error)
        if size > MOST_BYTES:
            raise AnsibleConnectionFailure(
                f"The host's answer has {size >> 20} MiB, and {MOST_BYTES >> 20} MiB is the most. "
                "Look at the host's Python and at what its programs print."
            )
        return code, said, error

    exec_command.bounds = True  # type: ignore[attr-defined]
    return exec_command


def short(diff: Any) -> Any:
    """A difference as it is shown: one that is too long, or that has another form, says so in one line."""
    sides = [diff.get(name) for name in ("before", "after")] if isinstance(diff, dict) else [None]
    if not isinstance(diff, dict) or not all(isinstance(each, (str, dict, type(None))) for each in sides):
        return {"prepared": "The difference is not shown: it has an unknown form.\n"}
    lines = sum(each.count("\n") if isinstance(each, str) else _size(each) for each in sides)
    if lines > MOST_LINES:
        return {"prepared": f"The difference is not shown: it has {lines} lines.\n"}
    return diff


def _size(value: Any) -> int:
    """Lines of a value that is shown with one line for each text."""
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return 1 + value.count("\n") if isinstance(value, str) else 1


class CallbackModule(CallbackBase):
    """Puts the bounds in before the first task: processes that run tasks are copies of this one."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "host_answers"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        ssh = connection_loader.get("ssh", class_only=True)
        if not getattr(ssh.exec_command, "bounds", False):
            ssh.exec_command = bounded(ssh.exec_command)
        shown = CallbackBase._get_diff
        if not getattr(shown, "bounds", False):

            def get_diff(callback: Any, difflist: Any) -> str:
                listed = difflist if isinstance(difflist, list) else [difflist]
                return str(shown(callback, [short(each) for each in listed[:MOST_LINES]]))

            get_diff.bounds = True  # type: ignore[attr-defined]
            CallbackBase._get_diff = get_diff
