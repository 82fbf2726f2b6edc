"""Deciding what a run needs, reading what its processes say, and following its pods through a server's answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from trainyard.kube.api import Api
from trainyard.trainings.kept_logs import KeptLogs
from trainyard.trainings.log_events import events, isolation, progress_line, summary
from trainyard.trainings.names import INDEX_LABEL, ROLE_LABEL
from trainyard.trainings.pod_logs import PodLogs
from trainyard.trainings.watch import RunView

TRAINING = training()


CHIEF = [{"event": "step", "time": 10.0, "step": 20}, {"event": "step", "time": 20.0, "step": 40}]


def attempt(target: str, outcome: str, begin: float = 12.0) -> dict:
    return {"target": target, "outcome": outcome, "detail": "10.0.0.9", "begin": begin, "end": begin + 1}


@pytest.mark.parametrize(
    ("attempts", "blocked"),
    [
        ([attempt("target", "timeout"), attempt("control", "connected")], True),
        ([attempt("target", "refused"), attempt("control", "connected")], True),
        ([attempt("target", "connected"), attempt("control", "connected")], False),
        ([attempt("target", "connected", begin=1.0)], False),
        ([attempt("target", "timeout"), attempt("control", "timeout")], None),
        ([attempt("target", "timeout", begin=1.0), attempt("control", "connected")], None),
        ([attempt("target", "timeout", begin=19.5), attempt("control", "connected")], None),
        ([attempt("target", "unresolved"), attempt("control", "connected")], None),
        ([], None),
    ],
)
def test_isolation_needs_a_port_in_use_and_a_network_that_works(attempts: list[dict], blocked: bool | None) -> None:
    assert isolation(attempts, CHIEF)["stranger_blocked"] is blocked


def test_the_port_is_in_use_as_soon_as_the_chief_has_connected() -> None:
    attempts = [attempt("target", "timeout", begin=7.0), attempt("control", "connected")]
    assert isolation(attempts, CHIEF)["stranger_blocked"] is None
    assert isolation(attempts, [{"event": "connected", "time": 6.5}, *CHIEF])["stranger_blocked"] is True


def test_events_are_found_between_other_lines() -> None:
    text = 'I0000 cpu\n{"event": "step", "step": 20}\n{"other": 1}\n{"event": "st'
    assert events(text) == [{"event": "step", "step": 20}]


@pytest.mark.parametrize(
    "line",
    [
        '{"event": ["step"]}',
        '{"event": 5}',
        '{"event": null}',
        '{"event": "step", "step": "ten"}',
        '{"event": "step", "step": 1.5}',
        '{"event": "step", "step": true}',
        '{"event": "step", "step": 1, "loss": "low"}',
        '{"event": "step", "step": 1, "steps_per_second": [3]}',
        '{"event": "step", "step": 1, "time": null}',
        '{"event": "evaluate", "accuracy": {"top1": 0.9}}',
        '{"event": "evaluate", "character_error_rate": "low"}',
        '{"event": "end", "result": {"passed": true}}',
        '{"event": "step", "loss": 1' + "0" * 400 + "}",
        '{"event": ' + '{"a": ' * 100_000,
    ],
)
def test_lines_of_other_types_are_ignored(line: str) -> None:
    good = '{"event": "step", "step": 1, "loss": null, "mine": {"any": ["thing"]}}'
    assert [event["step"] for event in events(f"{line}\n{good}\n")] == [1]


def test_json_of_a_stranger_is_none_of_ours() -> None:
    assert events('{"event": "start", "time": "2026-11-22T15:00:00"}\n{"event": "x", "time": 3}\n') == [
        {"event": "x", "time": 3}
    ]


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (
            {"step": 400, "steps_total": 2000, "loss": 0.31214, "steps_per_second": 121.44},
            "step 400 of 2000, loss 0.3121, 121.4 steps/s",
        ),
        ({"step": 400, "steps_total": 0, "loss": None}, "step 400"),
    ],
)
def test_progress_line(step: dict, line: str) -> None:
    assert progress_line(step) == line


def test_summary_takes_the_accuracy_from_the_end_or_the_last_evaluation() -> None:
    chief = [*CHIEF, {"event": "evaluate", "step": 40, "accuracy": 0.91}]
    assert summary(chief, {"train_steps": 60})["result"] == "unknown"
    end = {"event": "end", "step": 60, "accuracy": 0.92, "result": "passed", "seconds": 3.0, "steps_per_second": 20.0}
    found = summary([*chief, end], {"train_steps": 60, "accuracy_bound": 0.9})
    assert (found["steps"], found["accuracy"], found["result"], found["accuracy_bound"]) == (60, 0.92, "passed", 0.9)


@pytest.mark.parametrize(
    ("end", "rates"),
    [
        ({}, [0.2, 0.4]),
        ({"step": 40, "accuracy": 0.8}, [0.2, 0.4]),
        ({"step": 40, "accuracy": 0.9, "accuracy_step": 20}, [0.1, 0.3]),
        ({"step": 40, "accuracy": 0.9, "accuracy_step": 30}, []),
    ],
)
def test_summary_takes_rates_of_error_from_the_evaluation_that_counts(end: dict, rates: list) -> None:
    chief = [
        {"event": "evaluate", "step": 20, "accuracy": 0.9, "character_error_rate": 0.1, "word_error_rate": 0.3},
        {"event": "evaluate", "step": 40, "accuracy": 0.8, "character_error_rate": 0.2, "word_error_rate": 0.4},
        {"event": "end", **end},
    ]
    found = summary(chief, {})
    assert [found[name] for name in ("character_error_rate", "word_error_rate") if name in found] == rates


def pod(name: str, role: str, status: dict, created: str = "2026-11-21T12:00:00Z") -> dict:
    labels = {ROLE_LABEL: role, INDEX_LABEL: "0"}
    meta = {
        "name": name,
        "namespace": "trainings",
        "uid": name,
        "labels": labels,
        "creationTimestamp": created,
        "resourceVersion": "7",
    }
    return {"metadata": meta, "status": status}


def container(state: dict) -> dict:
    return {"containerStatuses": [{"state": state}]}


def view(tmp_path: Path, pods: list[dict], changes: list[dict], log: str = "") -> RunView:
    """A run whose `pods` are listed once; `changes` come on the watch that follows."""
    space = "/api/v1/namespaces/trainings/pods"

    def listed(query: list[tuple[str, str]]) -> str:
        if ("watch", "1") in query:
            return "\n".join(map(json.dumps, changes))
        return json.dumps({"metadata": {"resourceVersion": "5"}, "items": pods})

    jobset = {"metadata": {"creationTimestamp": "2026-11-21T12:00:00Z"}, "status": {"restarts": 1}}
    logs = {f"{space}/{each['metadata']['name']}/log": lambda _: log for each in pods}
    sets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets"
    server = ApiServer({space: listed, f"{sets}/mnist": jobset, **logs})
    return RunView(Api(server), TRAINING, PodLogs(Api(server), KeptLogs(str(tmp_path), "run", "attempt")))


def test_exit_codes_of_deleted_pods_are_seen(tmp_path: Path) -> None:
    running = pod("ps-a", "ps", {"phase": "Running", **container({"running": {}})})
    ended = pod("ps-a", "ps", {"phase": "Failed", **container({"terminated": {"exitCode": 143}})})
    changes = [{"type": "MODIFIED", "object": ended}, {"type": "DELETED", "object": ended}]
    seen = view(tmp_path, [running], changes)
    seen.refresh()
    assert (seen.roles(), seen.unreleased()) == ({"ps-0": "running"}, ["ps-a"])
    seen.refresh()
    assert (seen.roles(), seen.unreleased()) == ({"ps-0": 143}, [])


def test_a_restarted_role_is_its_newest_pod_and_old_logs_stay(tmp_path: Path) -> None:
    old = pod("chief-a", "chief", {"phase": "Failed", **container({"terminated": {"exitCode": 75}})})
    new = pod("chief-b", "chief", {"phase": "Running", **container({"running": {}})}, created="2026-11-21T12:01:00Z")
    seen = view(tmp_path, [old, new], [], log='2026-11-21T12:00:01.5Z {"event": "step", "step": 20, "time": 1}\n')
    seen.refresh()
    seen.keep_logs()
    assert seen.roles() == {"chief-0": "running"}
    assert sorted(path.name for path in (tmp_path / "run" / "attempt").iterdir()) == ["chief-a.log", "chief-b.log"]
    assert ([event["step"] for event in seen.chief], len(seen.in_place)) == ([20, 20], 1)
