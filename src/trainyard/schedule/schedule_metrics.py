"""Metrics of a run for the node exporter's textfile collector; docs/reference/reprovisioning-alerts.yml has alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.files import write as write_file

PREFIX = "trainyard_reprovision_"
HOST_STATES = ("clean", "drift", "unreachable", "failed", "unknown")
CLASSES = ("repairable", "restart", "control_plane", "person", "foreign")
SUCCESS = (0, 1, 3)
"""Exit statuses of a conclusive run: clean or repaired, drift is left, held back."""


@dataclass(frozen=True)
class Metric:
    """One gauge.

    :param samples: pairs of labels and value.
    """

    name: str
    help: str
    samples: tuple[tuple[Mapping[str, str], float], ...]


def metrics(
    report: Mapping[str, Any], *, site: str, last_success: float, interval: float, lock_refused: bool = False
) -> list[Metric]:
    """Return all metrics of a run.

    :param report: the content of its `report.json`.
    :param site: label of each metric, as several sites may share a collector.
    :param last_success: end of the last run with a status of `SUCCESS`, in seconds since the epoch; 0 for never.
    :param interval: seconds between two scheduled runs; 0 if unknown.
    :param lock_refused: whether a run ended because another one held the lock.
    """
    items = report.get("items") or []
    ended = float(report.get("ended") or 0)
    hosts = Counter(str(each.get("state")) for each in (report.get("hosts") or {}).values())
    classes = Counter(str(each.get("class")) for each in items)
    oldest = min((float(each["first_seen"]) for each in items), default=ended)
    revision = report.get("revision") or {}
    signed = {"True": "yes", "False": "no"}.get(str(revision.get("signed")), "unknown")

    def one(name: str, help: str, value: float) -> Metric:
        return Metric(PREFIX + name, help, (({"site": site}, value),))

    def each(name: str, help: str, label: str, values: Iterable[str], counts: Mapping[str, int]) -> Metric:
        return Metric(PREFIX + name, help, tuple(({"site": site, label: it}, counts.get(it, 0)) for it in values))

    commit, ref = str(revision.get("commit") or ""), str(revision.get("ref") or "")
    return [
        one("last_run_timestamp_seconds", "End of the last run.", ended),
        one(
            "last_success_timestamp_seconds",
            "End of the last conclusive run: exit status 0, 1 or 3.",
            last_success,
        ),
        one("duration_seconds", "Duration of the last run.", float(report.get("seconds") or 0)),
        one("exit_status", "Exit status of the last run.", float(report.get("exit_status") or 0)),
        one("interval_seconds", "Seconds between two scheduled runs, 0 if unknown.", interval),
        one("oldest_drift_seconds", "Age of the oldest item, 0 without any.", max(0.0, ended - oldest)),
        one("lock_refused", "1 if another run held the lock.", float(lock_refused)),
        each("hosts", "Hosts by their state.", "state", HOST_STATES, hosts),
        each("items", "Items of drift by their class.", "class", CLASSES, classes),
        Metric(
            f"{PREFIX}revision_info",
            "The revision that the last run compared with.",
            (({"site": site, "commit": commit, "ref": ref, "signed": signed}, 1.0),),
        ),
    ]


def exposition(listed: Iterable[Metric]) -> str:
    """Return the metrics in the text format of Prometheus."""
    lines = []
    for metric in listed:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} gauge"]
        for labels, value in metric.samples:
            shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            lines.append(f"{metric.name}{{{shown}}} {value:.15g}")
    return "\n".join(lines) + "\n"


def write(path: str, listed: Iterable[Metric]) -> None:
    """Write the file atomically, so that the collector never reads half of one. All users may read it.

    :raises TrainyardError: the disk refuses.
    """
    write_file(path, exposition(listed), 0o644)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
