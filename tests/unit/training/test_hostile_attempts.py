"""Annotations that an operator of a namespace chooses never become a path outside the folder of logs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training import test_service as services
from tests.unit.training.samples import training
from tests.unit.training.scripted import SETS, Cluster, Script
from tests.unit.training.test_stop import Cluster as Stopping
from trainyard.core.progress import Progress
from trainyard.core.untrusted import UntrustedError
from trainyard.kube.api import Api
from trainyard.trainings import record, run_state
from trainyard.trainings.jobset import run_object
from trainyard.trainings.pod_logs import kept_logs
from trainyard.trainings.run import Run, Settings
from trainyard.trainings.stop import Stop
from trainyard.trainings.submit import new_attempt, submit

TRAINING = training(logs={"claim": "training"})
RUNS: Script = [(0, "start"), (0, "say", "chief-0", {"event": "x"})]
FAILS: Script = [*RUNS, (0, "exit", "chief-0", 3), (0, "end", "Failed")]
ENDS: Script = [(1, "say", "chief-0", {"event": "end", "result": "passed"})]
ENDS += [(1, "exit", place, 0) for place in ("chief-0", "ps-0", "worker-0", "worker-1")]
ENDS += [(1, "end", "Completed")]


def hostile(folder: Path) -> dict[str, Any]:
    outside = folder / "outside"
    return {
        "absolute": str(outside),
        "above": "../../outside",
        "inside above": "20261121T120000Z-0001/../../../outside",
        "nul": "a\0b",
        "long": "a" * 5_000,
        "list": ["a", str(outside)],
        "number": 7,
        "empty": "",
        "dot": ".",
        "line break": "20261121T120000Z-0001\n",
        "digits of another script": "\uff12\uff10261121T120000Z-0001",
    }


NAMES = list(hostile(Path("/")))


def stop(attempt: Any, logs: Path) -> None:
    server = Stopping()
    server.objects[f"{SETS}/mnist"]["metadata"]["annotations"]["trainyard.dev/attempt"] = attempt
    Stop(Api(server), "mnist", str(logs), print).plan().execute()


def _cluster(script: Script, attempt: Any) -> Cluster:
    cluster = Cluster(TRAINING, script)
    cluster.objects[f"{SETS}/mnist"]["metadata"]["annotations"]["trainyard.dev/attempt"] = attempt
    return cluster


def replace(attempt: Any, logs: Path) -> None:
    cluster = _cluster(FAILS, attempt)
    live = run_state.live_object(Api(cluster), "trainings", "mnist")
    submit(Api(cluster), TRAINING, live, "auto", print, log_dir=str(logs), clock=cluster.clock)


def adopt_and_follow(attempt: Any, logs: Path) -> None:
    cluster = _cluster([*RUNS, *ENDS], attempt)
    settings = Settings(str(logs), isolation_probe=False)
    Run(Api(cluster), TRAINING, settings, Progress(None), cluster.clock).plan().execute()


def service(attempt: Any, logs: Path) -> None:
    server = services.Cluster({})
    services.service(server, logs).plan().execute()
    server.objects[services.DEPLOYMENT]["metadata"]["annotations"]["trainyard.dev/attempt"] = attempt
    labels = {"trainyard.dev/run": "mnist", "trainyard.dev/role": "server"}
    meta = {"name": "mnist-0", "namespace": "trainings", "labels": labels, "uid": "p"}
    meta["creationTimestamp"] = "2026-11-21T12:00:00Z"
    running = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
    server.objects["/api/v1/namespaces/trainings/pods/mnist-0"] = {"metadata": meta, "status": running}
    server.objects["/api/v1/namespaces/trainings/pods/mnist-0/log"] = lambda _: "2026-11-21T12:00:01.5Z x\n"
    services.service(server, logs).plan(restart=True).execute()


WAYS: dict[str, Callable[[Any, Path], None]] = {
    "stop": stop, "replace": replace, "adopt and follow": adopt_and_follow, "service": service,
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_an_attempt_never_leaves_the_folder_of_logs(tmp_path: Path, name: str, way: str) -> None:
    logs = tmp_path / "logs" / "deep"
    logs.mkdir(parents=True)
    WAYS[way](hostile(tmp_path)[name], logs)
    made = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix == ".log"]
    assert made, "the logs are kept all the same"
    assert [path for path in made if not path.is_relative_to(logs / "trainings-mnist")] == []
    assert {path.parent.name for path in made} == {"unknown"}


def test_an_attempt_of_ours_is_known() -> None:
    attempt = new_attempt()
    assert run_state.attempt_of(run_object(TRAINING, attempt)) == attempt
    assert run_state.attempt_of({"metadata": {}}) == "" and run_state.attempt_of(None) == ""


@pytest.mark.parametrize("name", NAMES)
def test_a_record_has_no_other_attempt(tmp_path: Path, name: str) -> None:
    value = hostile(tmp_path)[name]
    found = record.read({"data": {"result.json": json.dumps({"attempt": value})}})["attempt"]
    assert found == ("" if value == "" else "unknown")


FILES = {"claim": "c", "folder": "/logs/mnist", "image": "mirror:5000/a@sha256:1"}


OF_OTHERS = ("/", "/logs/..", "/logs/../data", "/logs/a/b", "/logs/other", "/logs", "", 1, None)
BAD = {
    "folder": OF_OTHERS,
    "claim": ("../c", "C", "", None, ["c"]),
    "image": ("a b", "a\nb", "\x1b[2J", None, 7),
}
GOOD = [{}, {"folder": "/logs", "claim": "mnist-logs"}]


@pytest.mark.parametrize("changes", [*GOOD, *({key: value} for key, values in BAD.items() for value in values)])
def test_files_of_a_record_are_those_that_we_write_of_this_run(changes: dict[str, Any]) -> None:
    """With `-e delete=true` a pod empties that folder of that claim: another run's is refused."""
    text = json.dumps({"files": {**FILES, **changes}})
    found = record.read({"metadata": {"name": "mnist-result"}, "data": {"result.json": text}})
    assert ("files" in found) == (changes in GOOD)


@pytest.mark.parametrize("pod", ["a/../../b", "/etc/cron.d/x", "..", "a\0b", "a\nb"])
def test_the_name_of_a_pod_never_leaves_the_folder_of_its_attempt(tmp_path: Path, pod: str) -> None:
    kept = kept_logs(str(tmp_path / "logs"), "t", "r", "20261121T120000Z-0001")
    if pod == "..":
        kept.keep(pod, "chief", "x")
        assert (tmp_path / "logs" / "t-r" / "20261121T120000Z-0001" / "...log").exists()
    else:
        with pytest.raises(UntrustedError):
            kept.keep(pod, "chief", "x")
    assert os.listdir(tmp_path) in ([], ["logs"])
