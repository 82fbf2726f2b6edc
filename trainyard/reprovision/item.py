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

KEY_LENGTH = 16


@dataclass(frozen=True)
class Item:
    """One difference, or one refusal of a role.

    :param host: name in the inventory, or `cluster`, or `controller`.
    :param module: name without its collection.
    :param subject: what differs: a path, a unit, an object of the cluster, a sysctl.
    :param before: what is there, short and masked; `after` is what is wanted.
    :param kind: one of CLASSES.
    :param reason: why it is left to a person; empty where it may be repaired.
    :param first_seen: seconds since the epoch; `last_seen` is the same.
    :param runs: reports in a row that have it.
    :param done: empty, `repaired`, `repaired, proven`, or `held back`, `waits`, `failed` with a reason.
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
    done: str = ""
    via: str = ""

    @property
    def place(self) -> str:
        """Where the run has to go for it to be changed: the host whose play has the task."""
        return self.via or self.host

    @property
    def key(self) -> str:
        """The same for the same thing in every run, whatever its values are."""
        text = json.dumps([self.host, self.role, self.task, self.module, self.subject])
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:KEY_LENGTH]

    def as_json(self) -> dict[str, Any]:
        """Its fields, with `class` for `kind`, and its key."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found["class"] = found.pop("kind")
        return {"key": self.key, **found}


def from_json(found: Mapping[str, Any]) -> Item:
    """The item that `as_json` wrote; a field that this version does not know is left out."""
    known = {each.name for each in fields(Item)}
    return Item(**{name: value for name, value in found.items() if name in known}, kind=str(found["class"]))
