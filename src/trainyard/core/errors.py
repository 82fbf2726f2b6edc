"""The base class of trainyard's exceptions.

Each failure that a user can correct is a `TrainyardError`. The runner turns it into `fail_json` at the edge of a
module. Any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations


class TrainyardError(Exception):
    """A failure with its cause and its remedy.

    :param message: one sentence with the object and the wrong value.
    :param remedy: one sentence with the user's next action; empty if only a retry helps.
    :param facts: JSON-serialisable values that the module returns with the message, never secrets.
    """

    def __init__(self, message: str, *, remedy: str = "", **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class CommandError(TrainyardError):
    """A program that exited with an unexpected status, or did not exit in time."""


class WaitError(TrainyardError):
    """A wait that timed out; `facts['last_state']` holds the last observed state."""
