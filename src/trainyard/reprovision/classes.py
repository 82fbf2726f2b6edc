"""The class of an item, as the roles declare it in `drift` of their `meta/provides.yml`.

A row with `everywhere` applies to its subject in any role, and comes first. The other rows apply to results of their
own role. The first matching row decides. An item without a matching row needs an operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..core.errors import TrainyardError
from ..site.provided import FILE, ROLES
from .item import CLASSES, PERSON, REPAIRED

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
