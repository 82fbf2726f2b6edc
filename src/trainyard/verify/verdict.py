"""The verdict on a site and its receipt: pure functions over plain data.

The result of a check is `pass`, `fail` or `unknown` (it could not be made). One `fail` fails the site. Without a
`fail`, one `unknown` makes the verdict unknown, because an incomplete proof is no proof.
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
from ..trainings.log_events import DEVICE_FIELDS, ERROR_RATES, idle_gpus
from .observation import Unread

T = TypeVar("T")

PASS = "pass"  # noqa: S105 - a verdict
FAIL = "fail"
UNKNOWN = "unknown"

SCHEMA = 2
"""Version of the receipt's format: 2 has a list of trainings, 1 had a single training."""

VOLATILE = ("written_at", "wall_seconds", "measured")
"""Top-level fields that change on each run of an unchanged site; they never cause a rewrite of the receipt."""


@dataclass(frozen=True)
class Check:
    """A check of the site and its result.

    :param name: snake_case; unique in a receipt together with `run`.
    :param result: `pass`, `fail` or `unknown`.
    :param detail: one sentence; the same for the same state, so without times and counters.
    :param settles: true if a failure can disappear by itself within seconds (a pod that is ending or starting).
    :param run: name of the checked run; empty for a check of the site itself.
    """

    name: str
    result: str
    detail: str
    settles: bool = False
    run: str = ""

    def as_dict(self) -> dict[str, str]:
        run = {"run": self.run} if self.run else {}
        return {"name": self.name, **run, "result": self.result, "detail": self.detail}


def of_faults(name: str, wrong: Sequence[str], well: str, *, settles: bool = False) -> Check:
    """Return a check that fails with all faults, or passes if there is none.

    :param wrong: the faults, each as a clause.
    :param well: the detail of a passed check.
    """
    return Check(name, FAIL, "; ".join(wrong), settles) if wrong else Check(name, PASS, well)


def judge(name: str, seen: T | Unread, rule: Callable[[T], Check]) -> Check:
    """Apply a rule to a value; if it could not be read, return `unknown` with the reason."""
    return Check(name, UNKNOWN, seen.reason, seen.settles) if isinstance(seen, Unread) else rule(seen)


def title(check: Mapping[str, str]) -> str:
    """Return the display name of a check in a receipt: `nodes_ready`, `training wide`."""
    return " ".join(filter(None, (check["name"], check.get("run", ""))))


def verdict(results: Iterable[str]) -> str:
    """Return the verdict over the results of all checks; `unknown` without any check."""
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
    """Return the receipt as JSON-serialisable data.

    :param nodes: one mapping per node: name, ready, kubelet, containerd, and gpus if it has any.
    :param versions: component or image name -> running version.
    :param made_images: reference -> digest of the images in the bundle, for later verdicts without a bundle.
    :param trainings: one `training.summary` per training of the site.
    :param measured: measurements of this run (latencies, restart counts); volatile.
    :param console: `console` (address) and `login` (command); None if the site has no console.
    :param allowed: unmanaged rights and entry points that the site allows: `name`, `found` and `reason`.
    :param wall_seconds: seconds since the start of the site's run; None if the start was not recorded.
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
    """Return the fields whose change causes a rewrite of the receipt."""
    return {name: value for name, value in receipt.items() if name not in VOLATILE}


def table(receipt: Mapping[str, Any], path: str) -> list[str]:
    """Return the receipt as lines of at most about 100 columns.

    :param path: of the JSON file; empty if it is not written.
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
    # The text quotes records, objects of the cluster and hosts, which must not control the terminal.
    return [clean(each).replace("\n", " ") for each in lines]


def _version_lines(versions: Mapping[str, str]) -> list[str]:
    """Return lines for the running images; versions of nodes are in the list of nodes."""
    images = {name: version for name, version in versions.items() if name not in ("kubelet", "containerd")}
    return ["", *(f"{name:<27} {version}" for name, version in images.items())] if images else []


def _training_lines(training: Mapping[str, Any]) -> list[str]:
    accuracy, bound = training.get("accuracy"), training.get("accuracy_bound")
    reached = (
        f"{_number(accuracy)} on held-out data, bound {_number(bound)}" if bound and accuracy is not None else accuracy
    )
    left_alone = ", left unchanged: its description differs" if training["left_alone"] else ""
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
    """Return `gpu, 2 allocated`, `cpu`, or `cpu, 1 GPU allocated and not used`; None if the run has not reported it."""
    compute, count = (training.get(name) for name in DEVICE_FIELDS)
    if compute is None:
        return None
    return ", ".join(filter(None, [compute, idle_gpus(training) or (f"{count} allocated" if count else "")]))


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read_receipt(path: str) -> dict[str, Any]:
    """Read the receipt at `path` and convert schema 1 to the current schema.

    :return: empty if it is missing or unknown, so that it is written again.
    """
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
    """Replace the whole file at `path`, mode 0644.

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
