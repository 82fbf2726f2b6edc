"""Objects of the attacker that the cluster accepts, and objects of other users that are targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mishaps import until
from red_attempts import CLAIM, OTHER, There, job, pod
from red_console import MARKUP
from stand import NAMESPACE, Stand

from trainyard.kube.api import Api
from trainyard.trainings.stop import Stop

PATH, ABOVE, RECORD = "red-path", "red-above", "red-record"
RUNS = (PATH, ABOVE, RECORD)
VOLUME = f"{OTHER}-{RECORD}-logs"
HOSTILE = f"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[31m[/x][bold]\u202e\u2028{MARKUP}"
"""Terminal commands, Rich markup, a change of writing direction, and HTML markup."""
SAID = "planted"
PROGRAM = f"import time; print({HOSTILE!r}, flush=True); print({SAID!r}, flush=True); time.sleep(900)"
START_SECONDS, STOP_SECONDS = 120.0, 120.0
BYTES = 900_000
"""Bytes of a text in a record: a whole ConfigMap may have 1 MiB."""


def annotations(attempt: str) -> dict[str, str]:
    """Return the operator's annotations of a run: a path, terminal commands, and as much text as fits."""
    return {
        "trainyard.dev/attempt": attempt,
        "trainyard.dev/workload": HOSTILE,
        "trainyard.dev/topology": HOSTILE,
        "trainyard.dev/spec-hash": HOSTILE,
        "red/filling": "x" * 200_000,
    }


def hostile_run(there: There, name: str, attempt: str) -> dict[str, Any]:
    """Return a Job in the project's form, whose pod prints text that harms a terminal."""
    command = {"command": ["/opt/venv/bin/python", "-c", PROGRAM]}
    return job(name, pod(there, container=command), None, annotations(attempt))


def plant_run(api: Api, there: There, name: str, attempt: str) -> None:
    """Start a run as the operator, and wait until its pod has printed.

    :param api: with the operator's token.
    """
    api.create(hostile_run(there, name, attempt))
    pods = f"trainyard.dev/run={name}"

    def printed() -> bool:
        found = api.list("v1", "Pod", NAMESPACE, labels=pods)
        return any(SAID in api.log(NAMESPACE, each["metadata"]["name"]) for each in found)

    until(f"a line of {name}", printed, START_SECONDS, pause=2.0)


def hostile_records() -> dict[str, dict[str, str]]:
    """Return name -> data of a record that the admission policy accepts."""
    texts = {"workload": HOSTILE, "result": HOSTILE, "attempt": "/etc/cron.d", "topology": HOSTILE, "x": HOSTILE}
    files = {"claim": CLAIM, "folder": "/logs/../..", "image": "x; rm -rf /"}
    odd = {"steps": "many", "accuracy": float("nan"), "seconds": 1e400, "logs": ["/etc/shadow"], "files": files}
    long = {"name": RECORD, "workload": "x" * BYTES, "result": "running"}
    deep = "[" * 100_000 + "]" * 100_000
    return {
        "a record with commands": {"result.json": json.dumps({**texts, "files": files, "roles": {HOSTILE: HOSTILE}})},
        "a record of 900 kB": {"result.json": json.dumps(long)},
        "a record without an end": {"result.json": deep, "manifest.json": deep},
        # The last one, because the deletion uses its paths.
        "a record with odd values": {"result.json": json.dumps(odd), "manifest.json": json.dumps([HOSTILE])},
    }


def record(namespace: str) -> dict[str, Any]:
    """Return the record of a run that has ended; in another namespace it lacks the label, and programs ignore it."""
    ours = {"app.kubernetes.io/managed-by": "trainyard"} if namespace == NAMESPACE else {}
    meta = {"name": f"{RECORD}-result", "namespace": namespace, "labels": {"trainyard.dev/run": RECORD, **ours}}
    data = {"result.json": json.dumps({"name": RECORD, "result": "stopped"})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def of_others() -> list[dict[str, Any]]:
    """Return a namespace with a record, a TensorBoard's Service and a volume of runs of other users."""
    port = {"port": 6006, "targetPort": 6006}
    labels = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": RECORD}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}},
        record(OTHER),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"tensorboard-{CLAIM}", "namespace": OTHER},
            "spec": {"ports": [port], "selector": {"trainyard.dev/tensorboard": CLAIM}},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": VOLUME, "labels": labels},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": {"namespace": OTHER, "name": f"{RECORD}-logs"},
                "hostPath": {"path": "/var/lib/red-nothing-is-here"},
            },
        },
    ]


def plant(stand: Stand) -> str:
    """Create objects of other users, and a record of the operator; return the name of the record."""
    for each in of_others():
        stand.api.apply(each)
    return plant_record(stand)


def plant_record(stand: Stand) -> str:
    """Create the record of a run of the operator, as the project would; return its name."""
    stand.api.apply(record(NAMESPACE))
    return f"{RECORD}-result"


def stop(stand: Stand, run: str, *, delete: bool = False) -> list[str]:
    """Stop a run with the playbook, as an administrator does; return the faults."""
    words = ["-e", f"run={run}", "-e", f"confirm={run}", *(["-e", "delete=true"] if delete else [])]
    _, said = stand.play("playbooks/train_stop.yml", *words)
    bad = [each for each in ("\x1b", "\x07") if each in said]
    return [f"train_stop.yml of {run} prints {bad[0]!r}"] if bad else []


def stop_elsewhere(api: Api, run: str, logs: Path, *, delete: bool = False) -> None:
    """Stop a run with the module's own class in this process, whose guards a caller has switched off."""
    from trainyard.trainings.run_index import at

    Stop(api, at(api, NAMESPACE, run), str(logs), print).plan(delete=delete).execute()


def volume_is_there(stand: Stand) -> bool:
    found = stand.api.get("v1", "PersistentVolume", VOLUME)
    return found is not None and not found["metadata"].get("deletionTimestamp")


def uproot(stand: Stand) -> None:
    """Remove all planted objects."""
    for name in (PATH, ABOVE):
        stand.api.delete("batch/v1", "Job", name, NAMESPACE, grace=0)
    for name in RUNS:
        stand.api.delete("v1", "ConfigMap", f"{name}-result", NAMESPACE)
    stand.api.delete("v1", "PersistentVolume", VOLUME)
    stand.api.delete("v1", "Namespace", OTHER)
