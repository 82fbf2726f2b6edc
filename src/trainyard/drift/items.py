"""Items of drift: differences between a site and its intended state, each with its class.

The class decides whether a converge repairs an item. Roles declare the classes in `drift` of their `meta/provides.yml`.
The first matching row decides. A row with `everywhere` comes first, and applies to its subject in any role. The other
rows apply to results of their own role. An item without a matching row needs an operator.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..core.errors import TrainyardError
from ..site.role_facts import FILE, ROLES

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
PRIVATE = "there, for its owner alone"


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


UNKNOWN = "no role declares whether a schedule may repair this"


@dataclass(frozen=True)
class Row:
    """Patterns of an item, in the syntax of file names, and its class.

    :param kind: one of `CLASSES`.
    :param module: pattern of the name without its collection.
    :param before: pattern of the present value.
    :param reason: why an operator is needed, for the classes that are not repaired.
    """

    kind: str
    role: str = "*"
    module: str = "*"
    subject: str = "*"
    before: str = "*"
    reason: str = ""

    def fits(self, role: str, module: str, subject: str, before: str) -> bool:
        pairs = ((role, self.role), (module, self.module), (subject, self.subject), (before, self.before))
        return all(fnmatchcase(value, pattern) for value, pattern in pairs)


def class_of(role: str, module: str, subject: str, before: str) -> tuple[str, str]:
    """Return the class of an item, and why it needs an operator; the reason is empty if it may be repaired.

    :param module: name without its collection.
    :param before: the present value, as the report shows it.
    """
    for row in table():
        if row.fits(role, module, subject, before):
            return row.kind, row.reason
    return PERSON, UNKNOWN


@cache
def table(roles: Path = ROLES) -> tuple[Row, ...]:
    """Return the rows of all roles in the order of their precedence.

    :raises TrainyardError: a role declares an invalid row.
    """
    everywhere: list[Row] = []
    own: list[Row] = []
    for path in sorted(roles.glob(f"*/{FILE}")):
        role = path.relative_to(roles).parts[0]
        declared: Sequence[Mapping[str, Any]] = (yaml.safe_load(path.read_bytes()) or {}).get("drift") or []
        for each in declared:
            row = _row(path, role, each)
            (everywhere if row.role == "*" else own).append(row)
    return (*everywhere, *own)


def _row(path: Path, role: str, declared: Mapping[str, Any]) -> Row:
    fields = dict(declared)
    kind, everywhere = fields.pop("class", None), fields.pop("everywhere", False)
    known = all(name in ("module", "subject", "before", "reason") and isinstance(fields[name], str) for name in fields)
    if kind not in CLASSES or not known or (kind in REPAIRED) == bool(fields.get("reason")):
        raise TrainyardError(
            f"{path} declares an invalid row of drift: {dict(declared)}.",
            remedy=f"Set class to one of {', '.join(CLASSES)}, and module, subject and before to patterns. Set reason "
            "for the classes that are not repaired, and only for them.",
        )
    return Row(kind, "*" if everywhere else role, **fields)
