"""Readers of cluster objects and logs: nothing that their writers choose ends in a traceback or a control character."""

from __future__ import annotations

import base64
import copy
import io
import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.unit.hostile.values import EXAMPLES, JSON, LABELS, SHOWN, TEXTS, documents, lines
from tests.unit.training.samples import training
from tests.unit.why import samples
from trainyard.cli import gpus, terminal, trainings
from trainyard.core.errors import TrainyardError
from trainyard.kube.certificate_requests import KubeletHost, node_of, pending, refusal
from trainyard.kube.placement import bars, left, requests
from trainyard.trainings import record
from trainyard.trainings.again import another
from trainyard.trainings.gpu_requests import gpu_faults, rows
from trainyard.trainings.log_events import events, outcome, progress_line, summary
from trainyard.trainings.model import Success
from trainyard.trainings.run_detail import attempts
from trainyard.trainings.run_index import Found
from trainyard.trainings.runs import row
from trainyard.why.answer import text
from trainyard.why.judge import explain

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
FIELDS = ("time", "step", "steps_total", "loss", "accuracy", "steps_per_second", "seconds", "result", "compute",
          "gpu_allocated", "accuracy_step", "task", "why", "stopped_early", "character_error_rate")  # fmt: skip
RECORD = ("name", "workload", "topology", "attempt", "result", "steps", "train_steps", "restarts", "accuracy", "why",
          "files", "logs", "roles", "submitted_at", "ended_at", "cause", "isolation", "accuracy_bound")  # fmt: skip
GPU_LABELS = (
    "nvidia.com/gpu.product", "nvidia.com/gpu.memory", "nvidia.com/cuda.driver-version.full", "nvidia.com/gpu.replicas",
    "nvidia.com/cuda.runtime-version.full", "nvidia.com/cuda.driver-version.major", "trainyard.dev/gpu",
    "nvidia.com/gpu.sharing-strategy", "trainyard.dev/run", "trainyard.dev/role",
)  # fmt: skip
OURS = st.dictionaries(st.sampled_from(GPU_LABELS), LABELS, max_size=len(GPU_LABELS))
QUANTITIES = st.sampled_from(["1", "2", "1k", "2e0", "500m", "9999999999999999999", "1Gi", "0"])


def printed(show: Any) -> str:
    console = Console(file=io.StringIO(), width=200)
    show(console)
    return str(console.file.getvalue())


@EXAMPLES
@given(OURS, QUANTITIES, QUANTITIES)
def test_nodes_with_any_label(labels: dict[str, str], offered: str, asked: str) -> None:
    node = {"metadata": {"name": "w1", "labels": {"trainyard.dev/gpu": "x", **labels}}, "spec": {}}
    node["status"] = {name: {"nvidia.com/gpu": offered, "cpu": "4"} for name in ("capacity", "allocatable")}
    pod = {"metadata": {"name": "p", "namespace": "n", "labels": labels}, "status": {"phase": "Running"}}
    pod["spec"] = {"nodeName": "w1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": asked}}}]}
    found = rows([node], [pod])
    assert not set(printed(lambda console: gpus.show(found, console))) & SHOWN
    wanted = training(worker={"gpus": 1, "cuda": "12.9"})
    list(gpu_faults(wanted, [node]))
    list(bars(pod, node)), left(node, [pod]), requests(pod)


@EXAMPLES
@given(
    documents(*RECORD),
    lines(*FIELDS),
    st.dictionaries(st.sampled_from(["trainyard.dev/attempt", "trainyard.dev/workload"]), TEXTS),
    TEXTS,
)
def test_records_events_annotations_and_why(kept: dict[str, Any], log: str, notes: dict[str, str], said: str) -> None:
    """Each reader gets each example: to make one costs more than to read it."""
    records_events_and_annotations(kept, log, notes)
    why(log, kept, said)


def records_events_and_annotations(kept: dict[str, Any], log: str, notes: dict[str, str]) -> None:
    result = json.dumps(kept).encode("utf-8", "replace").decode()
    held = {
        "metadata": {"name": "mnist-result", "namespace": "t", "annotations": notes},
        "data": {"result.json": result},
    }
    live = copy.deepcopy(samples.live())
    live["metadata"]["annotations"] |= notes
    said = events(log)
    known = record.read(held)
    for there in (live, None):
        found = row(Found("mnist", "t", there, held), [], said, NOW)
        assert not set(printed(lambda console, found=found: trainings.show([found], console))) & SHOWN
        attempts(Found("mnist", "t", there, held), known)
    (
        summary(said, {}),
        outcome(said, Success("accuracy", 0.5)),
        [progress_line(each) for each in said if each["event"] == "step"],
    )


def why(log: str, kept: dict[str, Any], message: str) -> None:
    message = f"quoted {message}"
    about = samples.waiting("chief", reason="CreateContainerError", message=message)
    seen = samples.look([about, *samples.PODS[1:]], log,
                        record=samples.record(**{**kept, "result": str(kept.get("result", "x"))}),
                        events=[samples.event(about, "Failed", message)])  # fmt: skip
    answer = explain(seen)
    # As `trainyard why` prints it.
    shown = terminal.cell(text(answer)).plain
    assert "quoted" in shown
    assert not set(shown) & SHOWN
    json.dumps(answer.as_json())


@EXAMPLES
@given(JSON)
def test_a_manifest_of_a_record(kept: Any) -> None:
    try:
        another(kept, "t", "mnist", "20261121T120000Z-0001", resume="auto")
    except TrainyardError:
        return
    raise AssertionError("no value of this kind is a manifest of ours")


ENCODED = st.binary(max_size=100).map(lambda data: base64.b64encode(data).decode())
REQUEST = st.fixed_dictionaries(
    {},
    optional={
        "signerName": st.one_of(TEXTS, st.just("kubernetes.io/kubelet-serving")),
        "username": st.one_of(TEXTS, st.just("system:node:w1")),
        "groups": st.lists(TEXTS, max_size=3),
        "usages": st.lists(TEXTS, max_size=3),
        "request": st.one_of(TEXTS, ENCODED),
    },
)


@EXAMPLES
@given(REQUEST)
def test_requests_for_certificates(spec: dict[str, Any]) -> None:
    host = KubeletHost(names=["w1"], addresses=["10.0.0.1"])
    request = {"metadata": {"name": "csr"}, "spec": spec}
    assert refusal(request, {"w1": host})
    pending(request), node_of(request)
