"""Limit the answer of a host to a task. Ansible reads an answer of any size while other hosts wait.

For an answer of 20 MB in short lines Ansible needs more than 100 s and 360 MB. For a difference of 200,000 lines on
both sides it needs much longer. Ansible has no setting for either.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: host_answers
type: aggregate
short_description: Limit the answers of hosts
description:
  - If a host answers a task by SSH with more than 8 MiB, it counts as unreachable, with a message.
  - A difference of more than 5,000 lines is not shown, but stays in the result.
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import connection_loader

MOST_BYTES = 2**23
"""Limit of an answer. The largest of the project is the plan of a manifest: each object before and after."""
MOST_LINES = 5_000
"""Limit for both sides of a difference. Python needs some seconds to compare that many lines in the worst case."""


def bounded(run: Callable[..., tuple[int, bytes, bytes]]) -> Callable[..., tuple[int, bytes, bytes]]:
    """Return a connection's method for commands that raises an error if the output of a command is too large."""

    def exec_command(connection: Any, *arguments: Any, **options: Any) -> tuple[int, bytes, bytes]:
        code, said, error = run(connection, *arguments, **options)
        size = len(said) + len(error)
        if size > MOST_BYTES:
            raise AnsibleConnectionFailure(
                f"The host's answer has {size >> 20} MiB, but the limit is {MOST_BYTES >> 20} MiB. "
                "Check the host's Python and the output of its programs."
            )
        return code, said, error

    exec_command.bounds = True  # type: ignore[attr-defined]
    return exec_command


def short(diff: Any) -> Any:
    """Return a difference for display. One that is too long or malformed is replaced by a line with the reason."""
    sides = [diff.get(name) for name in ("before", "after")] if isinstance(diff, dict) else [None]
    if not isinstance(diff, dict) or not all(isinstance(each, (str, dict, type(None))) for each in sides):
        return {"prepared": "The difference is not shown: it has an unknown form.\n"}
    lines = sum(each.count("\n") if isinstance(each, str) else _size(each) for each in sides)
    if lines > MOST_LINES:
        return {"prepared": f"The difference is not shown: it has {lines} lines.\n"}
    return diff


def _size(value: Any) -> int:
    """Return the number of lines of a value that is shown with one line for each text."""
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return 1 + value.count("\n") if isinstance(value, str) else 1


class CallbackModule(CallbackBase):
    """Installs the limits before the first task, as the processes that run tasks are copies of this one."""

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
