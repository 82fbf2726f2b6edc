"""One thing of a site that is not as it should be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

REPAIRABLE = "repairable"
RESTART = "restart"
CONTROL_PLANE = "control_plane"
PERSON = "person"
FOREIGN = "foreign"
CLASSES = (REPAIRABLE, RESTART, CONTROL_PLANE, PERSON, FOREIGN)
"""What an item may be: repaired; repaired with a restart, one host at a time; of a living control plane, which no verb
changes yet; a matter for a person; something that nobody here manages."""

REPAIRED = (REPAIRABLE, RESTART)
"""Classes that a converge repairs."""

CLUSTER = "cluster"
"""Host of an item that is changed through the API."""

CONTROLLER = "controller"
"""Host of an item that is a file of the controller."""

DONE, PROVEN, FAILED, LEFT = "repaired", "proven", "failed", "left"
"""The outcome of a converge for an item: repaired; repaired, and a later look does not find it; tried and not repaired;
not tried, as its host is held back or waits."""

KEY_LENGTH = 16


def key_of(host: str, role: str, module: str, subject: str) -> str:
    """Return the name by which reports know an item again: hexadecimal digits."""
    text = json.dumps([host, role, module, subject])
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True)
class Item:
    """One difference, or one refusal of a role.

    :param host: name in the inventory, or `cluster`, or `controller`.
    :param task: name of the task that has found it, for people; two runs may name it otherwise.
    :param module: name without its collection.
    :param subject: what differs: a path, a unit, an object of the cluster, a sysctl.
    :param before: what is there, short and masked; `after` is what is wanted.
    :param kind: one of CLASSES.
    :param reason: why it is left to a person; empty where it may be repaired.
    :param first_seen: seconds since the epoch; `last_seen` is the same.
    :param runs: reports in a row that have it.
    :param outcome: empty, or one of DONE, PROVEN, FAILED and LEFT; `done` is the sentence about it.
    :param via: host of the inventory whose play has the task, where `host` is none of them.
    """

    host: str
    role: str
    task: str
    module: str
    subject: str
    before: str = ""
    after: str = ""
    kind: str = PERSON
    reason: str = ""
    first_seen: float = 0.0
    last_seen: float = 0.0
    runs: int = 0
    outcome: str = ""
    done: str = ""
    via: str = ""

    @property
    def repaired(self) -> bool:
        """Whether a converge has repaired it."""
        return self.outcome in (DONE, PROVEN)

    @property
    def place(self) -> str:
        """Where the run has to go for it to be changed: the host whose play has the task."""
        return self.via or self.host

    @property
    def key(self) -> str:
        """The same for the same thing in every run, whatever its values and the words of its task are."""
        return key_of(self.host, self.role, self.module, self.subject)

    def as_json(self) -> dict[str, Any]:
        """Its fields, with `class` for `kind`, and its key."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found["class"] = found.pop("kind")
        return {"key": self.key, **found}


def from_json(found: Mapping[str, Any]) -> Item:
    """The item that `as_json` wrote; a field that this version does not know is left out."""
    known = {each.name for each in fields(Item)}
    return Item(**{name: value for name, value in found.items() if name in known}, kind=str(found["class"]))
