"""One difference between a site and its intended state."""

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
"""Classes of items: repaired; repaired with a restart, one host at a time; part of a running control plane, which no
verb changes yet; left to an operator; unmanaged."""

REPAIRED = (REPAIRABLE, RESTART)
"""Classes that a converge repairs."""

CLUSTER = "cluster"
"""Host of an item that is changed through the API."""

CONTROLLER = "controller"
"""Host of an item that is a file of the controller."""

DONE, PROVEN, FAILED, LEFT = "repaired", "proven", "failed", "left"
"""Outcomes of a converge for an item: repaired; repaired, and absent from a later check run; tried and not repaired;
not tried, as its host is held back or waits."""

KEY_LENGTH = 16


def key_of(host: str, role: str, module: str, subject: str) -> str:
    """Return the hexadecimal key that identifies an item in all reports."""
    text = json.dumps([host, role, module, subject])
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True)
class Item:
    """One difference, or one refusal of a role.

    :param host: name in the inventory, or `cluster`, or `controller`.
    :param role: role of the task; empty without one.
    :param task: name of the task that found it, for display; another run may use another name.
    :param module: name without its collection.
    :param subject: the differing object: a path, a unit, an object of the cluster, a sysctl.
    :param before: the present value, short and masked; `after` is the intended value.
    :param kind: one of CLASSES.
    :param reason: why it is left to an operator; empty if it may be repaired.
    :param first_seen: seconds since the epoch; `last_seen` has the same unit.
    :param runs: number of consecutive reports with the item.
    :param outcome: empty, or one of DONE, PROVEN, FAILED and LEFT; `done` is the sentence about it.
    :param via: host of the inventory whose play has the task, if that is not `host`.
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
        """Return whether a converge has repaired it."""
        return self.outcome in (DONE, PROVEN)

    @property
    def place(self) -> str:
        """Return the host whose play changes the item."""
        return self.via or self.host

    @property
    def key(self) -> str:
        """Return the key of the item, which does not depend on its values or on the name of its task."""
        return key_of(self.host, self.role, self.module, self.subject)

    def as_json(self) -> dict[str, Any]:
        """Return the fields, with `class` for `kind`, and the key."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found["class"] = found.pop("kind")
        return {"key": self.key, **found}


def from_json(found: Mapping[str, Any]) -> Item:
    """Return the item from the data of `as_json`, without fields that this version does not know."""
    known = {each.name for each in fields(Item)}
    return Item(**{name: value for name, value in found.items() if name in known}, kind=str(found["class"]))
