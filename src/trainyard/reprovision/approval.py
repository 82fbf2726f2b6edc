"""Approvals: an operator allows one converge to exceed the limits, only for the drift of one report."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.files import write
from . import schema1

SCHEMA = 2
FOLDER = "approvals"
_ID = re.compile(r"[0-9A-Za-z-]+")


@dataclass(frozen=True)
class Approval:
    """The approval of a report.

    :param report: id of the report.
    :param keys: of the items in the report.
    :param commit: the revision of the report.
    :param approved: seconds since the epoch.
    :param by: the user of the machine who approved it.
    :param used: when a converge used it, in seconds since the epoch; 0 if none has.
    :param fault: why its file cannot be read; else empty. An approval with a fault is invalid and is never saved.
    """

    report: str
    keys: tuple[str, ...]
    commit: str
    approved: float
    by: str
    used: float = 0.0
    fault: str = ""

    def why_not(self, keys: Collection[str], commit: str, now: float, hours: float) -> str:
        """Return why the approval is not valid for a run, as a clause; empty if it is.

        :param keys: of the items that this run has found.
        :param commit: this run's revision.
        :param now: seconds since the epoch.
        :param hours: validity of an approval.
        """
        if self.fault:
            return f"the approval of {self.report} cannot be read: {self.fault}"
        if self.used:
            return f"the approval of {self.report} has been used"
        if commit != self.commit:
            return f"the approval of {self.report} is for the revision {self.commit[:12]}"
        added, gone = set(keys) - set(self.keys), set(self.keys) - set(keys)
        if added or gone:
            return f"the drift differs from that of {self.report}: {len(added)} added, {len(gone)} gone"
        # An approval from the future means that the clock was set back.
        if not 0 <= now - self.approved <= hours * 3600:
            return f"the approval of {self.report} was valid for {hours:.0f} h"
        return ""


def approve(report: Mapping[str, Any], now: float, by: str) -> Approval:
    """Return the approval of a report.

    :param report: the content of a `report.json`.
    :param now: seconds since the epoch.
    :param by: the user of the machine who approves.
    :raises TrainyardError: the report is incomplete, or has no revision or nothing to repair.
    """
    keys = tuple(sorted(str(item["key"]) for item in report.get("items") or []))
    commit = str((report.get("revision") or {}).get("commit") or "")
    if report.get("state") != "complete":
        raise TrainyardError(
            f"The report {report['id']} was {report.get('state')}, so its drift is not fully known.",
            remedy="Run `trainyard reprovision run --mode report`, and approve the new report.",
        )
    if not commit:
        raise TrainyardError(
            f"The report {report['id']} has no revision, so the content of a repair is unknown.",
            remedy="Correct what its notes report about the revision. Then run a report again.",
        )
    if not any(item.get("class") in ("repairable", "restart") for item in report.get("items") or []):
        raise TrainyardError(f"The report {report['id']} shows nothing that a converge would repair.")
    return Approval(str(report["id"]), keys, commit, now, by)


def save(state_dir: Path, approval: Approval) -> None:
    """Save an approval.

    :raises TrainyardError: the disk refuses.
    """
    folder = state_dir / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {name: value for name, value in asdict(approval).items() if name != "fault"} | {"schema": SCHEMA}
    write(str(_path(state_dir, approval.report)), json.dumps(kept, indent=1) + "\n", 0o600)


def load(state_dir: Path) -> list[Approval]:
    """Return all approvals, the newest first. An unreadable one is invalid and has a fault."""
    found = []
    for path in (state_dir / FOLDER).glob("*.json"):
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            if read.pop("schema", schema1.OLD) == schema1.OLD:
                read["keys"] = _keys(state_dir, read)
            found.append(Approval(**{**read, "keys": tuple(read["keys"])}))
        except OSError as error:
            # Possible if root has written the file by hand, and the schedule's user reads it.
            found.append(_unreadable(path, error.strerror or type(error).__name__))
        except (ValueError, TypeError, KeyError):
            found.append(_unreadable(path, "it is not an approval"))
    return sorted(found, key=lambda each: -each.approved)


def _keys(state_dir: Path, approval: Mapping[str, Any]) -> list[str]:
    """Return the keys of an approval of schema 1 in schema 2, from the approved report.

    :raises ValueError: the report is missing, or does not match.
    """
    name = str(approval["report"])
    if not _ID.fullmatch(name):
        raise ValueError(name)
    keys = schema1.keys_of(json.loads((state_dir / "runs" / name / "report.json").read_text(encoding="utf-8")))
    if not set(approval["keys"]) <= set(keys):
        raise ValueError(name)
    return sorted({keys[key] for key in approval["keys"]})


def _unreadable(path: Path, fault: str) -> Approval:
    try:
        written = path.stat().st_mtime
    except OSError:
        written = 0.0
    return Approval(path.stem, (), "", written, "", fault=fault)


def find(
    approvals: Collection[Approval], keys: Collection[str], commit: str, now: float, hours: float
) -> tuple[Approval | None, str]:
    """Return the approval that is valid for a run, or why the newest one is not."""
    for each in approvals:
        if not each.why_not(keys, commit, now, hours):
            return each, ""
    newest = max(approvals, key=lambda each: each.approved, default=None)
    return None, newest.why_not(keys, commit, now, hours) if newest else "no report is approved"


def use(state_dir: Path, approval: Approval, now: float) -> Approval:
    """Mark an approval as used before anything changes, so that it allows no second converge."""
    used = replace(approval, used=now)
    save(state_dir, used)
    return used


def _path(state_dir: Path, report: str) -> Path:
    if not _ID.fullmatch(report):
        raise TrainyardError(
            f"{report} is not a report.", remedy="Run `trainyard reprovision show --list` to see all reports."
        )
    return state_dir / FOLDER / f"{report}.json"
