"""The one exception root of trainyard's modules.

Everything that a user can put right is a `TrainyardError`; the runner turns it into `fail_json` at the edge of a
module. Anything else is a bug and keeps its traceback.
"""

from __future__ import annotations


class TrainyardError(Exception):
    """A failure that names what is wrong and what to do about it.

    :param message: one sentence naming the object and the value that is wrong.
    :param remedy: one sentence saying what the user can do; empty if nothing but a retry helps.
    :param facts: JSON-serialisable values that the module returns beside the message, never secrets.
    """

    def __init__(self, message: str, *, remedy: str = "", **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class CommandError(TrainyardError):
    """A program that ended with a status other than zero, or did not end in time."""


class WaitError(TrainyardError):
    """A bounded wait that ran out; `facts['last_state']` holds what was seen last."""
