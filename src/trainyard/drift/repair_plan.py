"""Plan a converge: decide what to repair, where and in which order, or why nothing may be repaired.

Parts: the plan; the approvals. With an approval an operator allows one converge to exceed the limits, only for the
drift of one report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.files import write
from ..site import schedule
from . import schema1
from .find import LOOKING
from .items import CLUSTER, CONTROLLER, PERSON, REPAIRED, RESTART, Item
from .settings import Settings

OWN = (CLUSTER, CONTROLLER)
"""Places that are not hosts of the site. They are repaired after the hosts."""

FIRST = ("bundle", "lab", "efs")
"""Roles of the controller that each run of site.yml includes, also a run for a single host."""


WAITS = "waits: a training runs on the host, and a restart would disturb it"
ALONE = "left: the run is limited to some hosts"


@dataclass(frozen=True)
class Plan:
    """The plan of a converge.

    :param items: all items; those that keep coming back are already left to an operator.
    :param canary: the host that is repaired first and alone; empty without one.
    :param batches: the other hosts; those of a batch are repaired at the same time.
    :param own: whether objects of the cluster, or files of the controller, are repaired after the hosts.
    :param held: host -> why it is not repaired.
    :param refused: why nothing at all is repaired; else empty.
    :param repeats: keys of the items that keep coming back.
    """

    items: tuple[Item, ...]
    canary: str = ""
    batches: tuple[tuple[str, ...], ...] = ()
    own: bool = False
    held: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""
    repeats: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to repair, so that no second run is needed."""
        return not (self.canary or self.own)


def plan(
    items: Sequence[Item],
    hosts: Sequence[str],
    workers: Collection[str],
    settings: Settings,
    *,
    unreachable: Collection[str] = (),
    training: Collection[str] = (),
    converges: Sequence[Collection[str]] = (),
    approved: bool = False,
    some: bool = False,
) -> Plan:
    """Decide what to repair.

    :param items: of the report of this run.
    :param hosts: all hosts of the site, in its order; `workers` are those without a control plane.
    :param unreachable: hosts that did not answer.
    :param training: hosts that hold a pod of a running training.
    :param converges: the keys that each earlier converge repaired, the newest last.
    :param approved: whether an operator has approved exactly this drift, so that the limits do not apply.
    :param some: whether the run is limited to some hosts, so that it repairs nothing else.
    """
    judged = tuple(_judged(item, converges, settings.max_repeats) for item in items)
    repeats = tuple(new.key for new, old in zip(judged, items, strict=True) if new is not old)
    places = [name for name in (*hosts, *OWN) if any(item.place == name for item in judged)]
    held = {name: why for name in places if (why := _first(judged) or _held(name, judged, training))}
    held |= {name: ALONE for name in OWN if some and name in places and name not in held}
    wanted = [item for item in judged if item.kind in REPAIRED]
    drifted = {item.place for item in wanted} - set(OWN)
    refused = schedule.too_many_missing(
        hosts=len(hosts), unreachable=unreachable, max_unreachable=settings.max_unreachable
    ) or schedule.too_much(
        hosts=len(hosts),
        drifted=drifted,
        items=len(wanted),
        max_hosts=settings.max_hosts,
        max_items=settings.max_items,
    )
    if refused and not approved and wanted:
        return Plan(judged, held=held, refused=refused, repeats=repeats)
    ready = [name for name in places if name not in held and name not in OWN]
    own = [name for name in OWN if any(item.place == name and item.kind in REPAIRED for item in judged)]
    canary = _canary(ready, workers, training, settings.canary)
    rest = [name for name in ready if name != canary]
    restarted = {item.place for item in judged if item.kind == RESTART}
    size = schedule.share(settings.batch, len(ready)) if ready else 1
    batches = _batches(rest, restarted, size)
    # The same plays change both places, so one held place holds back the other.
    both = bool(own) and not any(name in held for name in OWN)
    return Plan(judged, canary, batches, both, held, repeats=repeats)


def _judged(item: Item, converges: Sequence[Collection[str]], repeats: int) -> Item:
    if item.kind in REPAIRED and schedule.comes_back(item.key, converges, repeats):
        return replace(item, kind=PERSON, reason=f"repaired {repeats} times in a row: something else changes it back")
    return item


def _first(items: Sequence[Item]) -> str:
    """Return why no repair is possible without changing an item that is left to an operator; empty if one is."""
    for item in items:
        first = item.role in FIRST or item.module == "code_image"
        if item.place == CONTROLLER and first and item.kind not in REPAIRED:
            why = f", because {item.reason}" if item.reason else ""
            return f"held back: every run begins with {item.subject}, which needs an operator{why}"
    return ""


def _held(host: str, items: Sequence[Item], training: Collection[str]) -> str:
    """Return why a host is not repaired; else empty. A host is repaired as a whole or not at all."""
    for item in items:
        # No play changes the findings of this module, so they hold back no host.
        if item.place == host and item.kind not in REPAIRED and item.module != LOOKING:
            return f"held back: {item.subject} needs an operator" + (f", because {item.reason}" if item.reason else "")
    if host in training and any(item.place == host and item.kind == RESTART for item in items):
        return WAITS
    return ""


def _canary(ready: Sequence[str], workers: Collection[str], training: Collection[str], wanted: str) -> str:
    """Return the host of `reprovision_canary` if it is ready, else a worker without a training, else the first host."""
    if wanted in ready:
        return wanted
    calm = [name for name in ready if name in workers and name not in training]
    return next(iter([*calm, *ready]), "")


def _batches(hosts: Sequence[str], restarted: Collection[str], size: int) -> tuple[tuple[str, ...], ...]:
    """Return the hosts without a restart in batches of `size`, then the others one by one."""
    calm = [name for name in hosts if name not in restarted]
    together = [tuple(calm[first : first + size]) for first in range(0, len(calm), size)]
    return (*together, *((name,) for name in hosts if name in restarted))


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
