"""A person's leave for one converge to pass the limits: for the drift of one report, and for nothing else."""

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
    """What somebody has looked at and let pass.

    :param report: id of the report.
    :param keys: the items in it.
    :param commit: the revision that it compared with.
    :param approved: seconds since the epoch.
    :param by: the user of the machine who approved.
    :param used: when a converge began with it, in seconds since the epoch; 0 where none did.
    :param fault: why its file cannot be read; empty where it can. It counts for nothing then, and is never written.
    """

    report: str
    keys: tuple[str, ...]
    commit: str
    approved: float
    by: str
    used: float = 0.0
    fault: str = ""

    def why_not(self, keys: Collection[str], commit: str, now: float, hours: float) -> str:
        """Why it does not count for a run, as a clause; empty if it does.

        :param keys: the items that this run has found.
        :param commit: this run's revision.
        :param now: seconds since the epoch.
        :param hours: for how long an approval counts.
        """
        if self.fault:
            return f"the approval of {self.report} cannot be read: {self.fault}"
        if self.used:
            return f"the approval of {self.report} has been used"
        if commit != self.commit:
            return f"the approval of {self.report} is for the revision {self.commit[:12]}"
        added, gone = set(keys) - set(self.keys), set(self.keys) - set(keys)
        if added or gone:
            return f"the drift is not that of {self.report} any more: {len(added)} items more, {len(gone)} gone"
        # A clock that was set back makes nothing younger than it is.
        if not 0 <= now - self.approved <= hours * 3600:
            return f"the approval of {self.report} was valid for {hours:.0f} h"
        return ""


def approve(report: Mapping[str, Any], now: float, by: str) -> Approval:
    """The approval of a report.

    :param report: the content of a `report.json`.
    :param now: seconds since the epoch.
    :raises TrainyardError: the report has no end, no revision, or nothing that could be repaired.
    """
    keys = tuple(sorted(str(item["key"]) for item in report.get("items") or []))
    commit = str((report.get("revision") or {}).get("commit") or "")
    if report.get("state") != "complete":
        raise TrainyardError(
            f"The report {report['id']} was {report.get('state')}: what it would have found is not known.",
            remedy="Run `trainyard reprovision run --mode report`, and approve that one.",
        )
    if not commit:
        raise TrainyardError(
            f"The report {report['id']} says no revision, so it cannot be told what would be repaired.",
            remedy="Mend what its notes say about the revision, and report again.",
        )
    if not any(item.get("class") in ("repairable", "restart") for item in report.get("items") or []):
        raise TrainyardError(f"The report {report['id']} shows nothing that a converge would repair.")
    return Approval(str(report["id"]), keys, commit, now, by)


def save(state_dir: Path, approval: Approval) -> None:
    """Keep an approval, or that it was used.

    :raises TrainyardError: the disk refuses.
    """
    folder = state_dir / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {name: value for name, value in asdict(approval).items() if name != "fault"} | {"schema": SCHEMA}
    write(str(_path(state_dir, approval.report)), json.dumps(kept, indent=1) + "\n", 0o600)


def load(state_dir: Path) -> list[Approval]:
    """All approvals, the newest first. One that cannot be read counts for nothing, and says so."""
    found = []
    for path in (state_dir / FOLDER).glob("*.json"):
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            if read.pop("schema", schema1.OLD) == schema1.OLD:
                read["keys"] = _keys(state_dir, read)
            found.append(Approval(**{**read, "keys": tuple(read["keys"])}))
        except OSError as error:
            # As when root wrote it by hand, and the schedule's own user runs.
            found.append(_unreadable(path, error.strerror or type(error).__name__))
        except (ValueError, TypeError, KeyError):
            found.append(_unreadable(path, "it is none"))
    return sorted(found, key=lambda each: -each.approved)


def _keys(state_dir: Path, approval: Mapping[str, Any]) -> list[str]:
    """The keys of an approval of schema 1 in schema 2, by the report that was approved.

    :raises ValueError: the report is gone, or was not that one.
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
    """The approval that counts for a run, or why the newest one does not."""
    for each in approvals:
        if not each.why_not(keys, commit, now, hours):
            return each, ""
    newest = max(approvals, key=lambda each: each.approved, default=None)
    return None, newest.why_not(keys, commit, now, hours) if newest else "no report is approved"


def use(state_dir: Path, approval: Approval, now: float) -> Approval:
    """Note that a converge begins with an approval, before anything is changed: it lets no second one pass."""
    used = replace(approval, used=now)
    save(state_dir, used)
    return used


def _path(state_dir: Path, report: str) -> Path:
    if not _ID.fullmatch(report):
        raise TrainyardError(f"{report} is no report.", remedy="`trainyard reprovision show --list` names them.")
    return state_dir / FOLDER / f"{report}.json"
