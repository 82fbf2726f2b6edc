"""The verdict on a site and the receipt that carries it: pure functions over plain data.

A check is `pass`, `fail` or `unknown` (it could not be made). One `fail` fails the site; without one, a single
`unknown` makes the verdict unknown: a proof with a hole is no proof.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..core import files
from ..core.errors import TrainyardError
from ..core.untrusted import clean
from ..trainings.logs import DEVICE_FIELDS, ERROR_RATES, idle_gpus
from .reading import Unread

T = TypeVar("T")

PASS = "pass"  # noqa: S105 - a verdict
FAIL = "fail"
UNKNOWN = "unknown"

SCHEMA = 2
"""Version of the receipt's shape: 2 has a list of trainings, where 1 had one."""

VOLATILE = ("written_at", "wall_seconds", "measured")
"""Top-level fields that differ from run to run on an unchanged site; they never cause a rewrite of the receipt."""


@dataclass(frozen=True)
class Check:
    """One question about the site and its answer.

    :param name: snake_case; with its run, unique in a receipt.
    :param result: `pass`, `fail` or `unknown`.
    :param detail: one sentence; the same for the same state, so without times and counters.
    :param settles: true if a failure can pass by itself within seconds (a pod that is ending or starting).
    :param run: the run that it is about; empty for the site itself.
    """

    name: str
    result: str
    detail: str
    settles: bool = False
    run: str = ""

    def as_dict(self) -> dict[str, str]:
        run = {"run": self.run} if self.run else {}
        return {"name": self.name, **run, "result": self.result, "detail": self.detail}


def judge(name: str, seen: T | Unread, rule: Callable[[T], Check]) -> Check:
    """Apply a rule to a value, or answer `unknown` with the reason why there is none."""
    return Check(name, UNKNOWN, seen.reason, seen.settles) if isinstance(seen, Unread) else rule(seen)


def title(check: Mapping[str, str]) -> str:
    """A check of a receipt as people call it: `nodes_ready`, `training wide`."""
    return " ".join(filter(None, (check["name"], check.get("run", ""))))


def verdict(results: Iterable[str]) -> str:
    """The verdict over the results of all checks; without any check nothing is known."""
    seen = set(results)
    strange = seen - {PASS, FAIL, UNKNOWN}
    if strange:
        raise ValueError(f"not a check result: {sorted(strange)}")
    if FAIL in seen:
        return FAIL
    return PASS if seen == {PASS} else UNKNOWN


def make_receipt(
    checks: Sequence[Check],
    *,
    nodes: Sequence[Mapping[str, Any]],
    versions: Mapping[str, str],
    made_images: Mapping[str, str],
    trainings: Sequence[Mapping[str, Any]],
    warnings: Sequence[str],
    measured: Mapping[str, Any],
    console: Mapping[str, str] | None = None,
    allowed: Sequence[Mapping[str, str]] = (),
    wall_seconds: float | None,
    written_at: str,
) -> dict[str, Any]:
    """The receipt as JSON-serialisable data.

    :param nodes: one mapping per node: name, ready, kubelet, containerd, and gpus where it has any.
    :param versions: component or image name to the version that was seen running.
    :param made_images: reference to digest of the images in the bundle, for verdicts that make none.
    :param trainings: what is known of each training of the site, by `training.summary`.
    :param measured: numbers of this very run (latencies, restart counts); volatile.
    :param console: `address` and `login`, how people reach the console; None where the site has none.
    :param allowed: foreign rights and doors that the site allows: `name`, `found` and `reason`.
    :param wall_seconds: seconds since the site's run began; None if nobody recorded the beginning.
    :param written_at: time in ISO 8601, UTC.
    """
    return {
        "schema": SCHEMA,
        "verdict": verdict(check.result for check in checks),
        "checks": [check.as_dict() for check in checks],
        "warnings": list(warnings),
        "nodes": [dict(node) for node in nodes],
        "versions": dict(sorted(versions.items())),
        "made_images": dict(sorted(made_images.items())),
        "trainings": [dict(training) for training in trainings],
        **({"allowed": [dict(each) for each in allowed]} if allowed else {}),
        **({"console": dict(console)} if console else {}),
        "measured": dict(measured),
        "wall_seconds": wall_seconds,
        "written_at": written_at,
    }


def stable(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """What has to differ before a receipt is written again."""
    return {name: value for name, value in receipt.items() if name not in VOLATILE}


def table(receipt: Mapping[str, Any], path: str) -> list[str]:
    """The receipt for people: lines of at most about 100 columns, the last one names the file.

    :param path: where the JSON lies; empty if it is written nowhere.
    """
    width = max([18, *(len(title(check)) for check in receipt["checks"])])
    lines = [f"{'check':<{width}} {'result':<8} detail"]
    lines += [f"{title(check):<{width}} {check['result']:<8} {check['detail']}" for check in receipt["checks"]]
    lines += [f"warning: {text}" for text in receipt["warnings"]]
    lines += [
        f"allowed: {each['name']}: {each['found']} ({each['reason'] or 'without a reason'})"
        for each in receipt.get("allowed") or []
    ]
    if receipt["nodes"]:
        lines.append("")
        head = f"{'node':<18} {'ready':<8} {'kubelet':<12} {'containerd':<12}"
        lines.append(f"{head} GPUs" if any("gpus" in node for node in receipt["nodes"]) else head.rstrip())
        for node in receipt["nodes"]:
            ready, gpus = "yes" if node["ready"] else "no", node.get("gpus")
            counted = f"{gpus['healthy']} of {gpus['offered']}" if gpus else ""
            line = f"{node['name']:<18} {ready:<8} {node['kubelet']:<12} {node['containerd']:<12} {counted}"
            lines.append(line.rstrip())
    lines += _version_lines(receipt["versions"])
    lines.append("")
    for training in receipt["trainings"]:
        lines += _training_lines(training)
    if receipt["wall_seconds"] is not None:
        lines.append(f"{'wall time':<18} {receipt['wall_seconds']:.0f} s")
    lines.append(f"{'verdict':<18} {receipt['verdict']}")
    lines.append(f"{'receipt':<18} {path or '(not written)'}")
    lines += [f"{what:<18} {value}" for what, value in (receipt.get("console") or {}).items()]
    # The run's last words on a terminal; they quote records, objects of the cluster and hosts.
    return [clean(each).replace("\n", " ") for each in lines]


def _version_lines(versions: Mapping[str, str]) -> list[str]:
    """The images that run; what runs on nodes stands with the nodes."""
    images = {name: version for name, version in versions.items() if name not in ("kubelet", "containerd")}
    return ["", *(f"{name:<27} {version}" for name, version in images.items())] if images else []


def _training_lines(training: Mapping[str, Any]) -> list[str]:
    accuracy, bound = training.get("accuracy"), training.get("accuracy_bound")
    reached = (
        f"{_number(accuracy)} on held-out data, bound {_number(bound)}" if bound and accuracy is not None else accuracy
    )
    left_alone = ", left alone: it has another description" if training["left_alone"] else ""
    rows = (
        ("training", f"{training['name']} {training['result']}{left_alone}"),
        ("steps", training.get("steps")),
        ("steps per second", training.get("steps_per_second")),
        ("seconds", training.get("seconds")),
        ("compute", _computed(training)),
        ("accuracy", reached),
        *((name.replace("_", " "), training.get(name)) for name in ERROR_RATES),
    )
    return [f"{name:<18} {_number(value)}" for name, value in rows if value is not None]


def _computed(training: Mapping[str, Any]) -> str | None:
    """`gpu, 2 allocated`, `cpu`, or `cpu, 1 GPU allocated and not used`; None where the run has not said it."""
    compute, count = (training.get(name) for name in DEVICE_FIELDS)
    if compute is None:
        return None
    return ", ".join(filter(None, [compute, idle_gpus(training) or (f"{count} allocated" if count else "")]))


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read_receipt(path: str) -> dict[str, Any]:
    """The receipt at `path`, in the shape of today where it is of schema 1; empty if there is none or it is not one
    that we know, so that it is written anew."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict) or found.get("schema") not in (1, SCHEMA):
        return {}
    if found["schema"] == 1:
        training = found.pop("training", None)
        found["trainings"] = [{**training, "left_alone": False}] if training else []
    return found


def write_receipt(path: str, receipt: Mapping[str, Any]) -> None:
    """Replace the file at `path` as a whole, mode 0644.

    :raises TrainyardError: the directory is missing or not writable.
    """
    text = json.dumps(receipt, indent=2) + "\n"
    try:
        os.stat(os.path.dirname(os.path.abspath(path)))
        files.write(path, text, 0o644)
    except (OSError, TrainyardError) as error:
        why = f"{path} cannot be written: {error.strerror}." if isinstance(error, OSError) else error.message
        raise TrainyardError(
            f"The receipt {why}",
            remedy="Set verify_receipt_path to a file in an existing directory that you may write to.",
        ) from error
