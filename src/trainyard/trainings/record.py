"""The record of a run in the cluster, which outlives the run: the ConfigMap NAME-result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..core.untrusted import at, clean, is_name, mapping
from ..core.waiter import CLOCK, Clock
from ..kube.api import Api, Object
from ..kube.apply import PatientApi
from .log_events import SUCCESSES, is_ours
from .model import Training
from .names import ATTEMPT_ANNOTATION, MANIFEST_KEY, RESULT_KEY, result_name
from .objects import result_record
from .run_state import checked_attempt
from .template import logs_claim, run_folder

RUNNING, FAILED, STOPPED, UNKNOWN = "running", "failed", "stopped", "unknown"
"""Results of a run in addition to `SUCCESSES`. Unknown: it has ended, but its report of the end could not be read."""

_COUNTS = ("steps", "train_steps", "restarts")
"""Fields of a record, but not of logs, whose values are whole numbers or None."""


def now() -> str:
    """Return the current time in the format of records: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def submitted(training: Training, attempt: str) -> dict[str, Any]:
    """Return the record of a run that has just been submitted.

    :return: the run's properties and the place of its files, which can thus be deleted if only the record is left.
    """
    return {
        "name": training.name,
        "workload": training.workload,
        "topology": training.topology,
        "description_hash": training.description_hash,
        "attempt": attempt,
        "result": RUNNING,
        "train_steps": training.flags.get("train_steps"),
        "accuracy_bound": training.flags.get("accuracy_bound", 0),
        "submitted_at": now(),
        # A later release of the project recognises the same run by it; see `run.py`.
        "code": training.code,
        "files": {
            "claim": logs_claim(training),
            "folder": run_folder(training),
            "image": training.decider.image,
            "image_pull_policy": training.image_pull_policy,
        },
    }


def read(record: Object | None) -> dict[str, Any]:
    """Return the result in a record; empty if there is none or it is unreadable.

    Operators can edit records: fields of an unexpected type are left out, so that the rest can be compared and shown.
    """
    found = kept(record, RESULT_KEY)
    checked = {name: it for name, it in found.items() if _is_ours(name, it)} if isinstance(found, dict) else {}
    run = str(at(record, "metadata", "name") or "").removesuffix(result_name(""))
    if "files" in checked and not _is_place_of_files(checked["files"], run):
        del checked["files"]
    return checked | ({"attempt": checked_attempt(checked["attempt"])} if "attempt" in checked else {})


def _is_ours(name: str, value: Any) -> bool:
    if name == "logs":
        return isinstance(value, list) and all(isinstance(each, str) and clean(each) == each for each in value)
    return is_ours("step" if name in _COUNTS else name, value)


def _is_place_of_files(value: Any, run: str) -> bool:
    """Return whether this is a value that `submitted` writes. A pod that deletes files is created from it.

    Valid are the run's folder on a shared claim, and the whole of the run's own claim.
    """
    place = mapping(value)
    claim, folder, image = place.get("claim"), place.get("folder"), place.get("image")
    own = (claim, folder) == (f"{run}-logs", "/logs") or (is_name(claim) and folder == f"/logs/{run}")
    return own and is_name(run) and isinstance(image, str) and image == "".join(clean(image).split())


def kept(record: Object | None, key: str) -> Any:
    """Return the value of a key in a record; None if it is missing or unreadable."""
    try:
        return json.loads(((record or {}).get("data") or {})[key])
    except (KeyError, ValueError, RecursionError):
        return None


def succeeded(result: Mapping[str, Any]) -> bool:
    """Return whether a run has succeeded and needs no further action."""
    return result.get("result") in SUCCESSES


def find(api: Api, namespace: str, name: str) -> Object | None:
    return api.get("v1", "ConfigMap", result_name(name), namespace)


def keep(api: Api, training: Training, result: Mapping[str, Any], clock: Clock = CLOCK) -> None:
    """Record a result with the hash of the run."""
    PatientApi(api, clock).apply(result_record(training, result))


def change(api: Api, record: Object, result: Mapping[str, Any], clock: Clock = CLOCK, *, manifest: Any = None) -> None:
    """Change the recorded result of a run.

    :param manifest: manifest of the object that ran it; None while that object exists.
    """
    meta = {key: record["metadata"].get(key) or {} for key in ("labels", "annotations")}
    meta["annotations"] = {**meta["annotations"], ATTEMPT_ANNOTATION: str(result.get("attempt", ""))}
    meta |= {key: record["metadata"][key] for key in ("name", "namespace")}
    data = {RESULT_KEY: json.dumps(result, indent=2, sort_keys=True)}
    if manifest is not None:
        data[MANIFEST_KEY] = json.dumps(manifest, sort_keys=True)
    PatientApi(api, clock).apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
