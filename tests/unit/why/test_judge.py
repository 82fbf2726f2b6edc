"""The answer as a whole: its text and JSON, what follows from what, and what could not be read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.why.cluster import CONTROL_PLANE, GPU, NOW, SYSTEM, ago, node, other
from tests.unit.why.samples import BEGUN, PODS, live, look, over, pod, record, said, steps, unplaced, waiting
from trainyard.core.errors import TrainyardError
from trainyard.kube.reads import Unread
from trainyard.why.answer import FOUND, UNKNOWN, WELL, about, span, text
from trainyard.why.judge import explain, judge
from trainyard.why.snapshot import Snapshot, load
from trainyard.why.table import TABLE

SAYS = "0/3 nodes are available: 2 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)"
HOLDERS = [
    other("cnn", "worker-0", "worker1", gpu="1"),
    other("cnn", "worker-1", "worker1", gpu="1"),
    other("speech", "train-0", "worker2", gpu="2"),
]


def held() -> Snapshot:
    mine = unplaced("worker", 1, f"{SAYS}. preemption: 0/3 nodes are available", run=live(worker={"gpus": 1}))
    return look(
        [*PODS[:3], mine],
        "",
        live(130, worker={"gpus": 1}),
        nodes=[CONTROL_PLANE, node("worker1", gpus=2), node("worker2", gpus=2)],
        everyone=[*SYSTEM, *HOLDERS],
        others={"trainings/cnn": [1200, 2000, 420.0]},
    )


TEXT = f"""\
mnist has been waiting for 2 min 10 s: worker-1 cannot be placed
cause     held_by      it requests nvidia.com/gpu 1; 0 of 4 are free
evidence  worker1      2 of 2 held by cnn/worker-0, cnn/worker-1 (step 1200 of 2000, about 7 min left)
evidence  worker2      2 of 2 held by speech/train-0 (time left unknown)
evidence  scheduler    "{SAYS}"
remedy    wait for cnn, or lower worker.replicas in workloads_trainings"""


def test_the_text_of_a_run_that_waits() -> None:
    answer = judge(held())
    assert text(answer) == TEXT
    assert answer.status == FOUND


def test_the_json_of_a_run_that_waits() -> None:
    found = json.loads(json.dumps(judge(held()).as_json()))
    assert list(found) == ["schema", "run", "namespace", "state", "since", "headline", "findings", "unread"]
    assert (found["schema"], found["state"], found["since"]) == (1, "waiting", ago(130))
    (finding,) = found["findings"]
    assert list(finding) == ["code", "part", "object", "message", "evidence", "remedy"]
    assert (finding["code"], finding["part"], finding["object"]) == ("held_by", "cause", "worker-1")
    assert finding["evidence"][2] == {"source": "scheduler", "object": "", "time": ago(130), "text": f'"{SAYS}"'}


def test_a_run_that_goes_on_well_is_one_line() -> None:
    answer = judge(look())
    assert text(answer) == "mnist has been running for 9 min 45 s, step 1500 of 2000"
    assert (answer.status, answer.as_json()["findings"]) == (WELL, [])


def test_what_is_broken_below_explains_what_waits_above() -> None:
    """A lost node: its pod is gone from the others' sight, and the chief is silent."""
    seen = look(log=said(*BEGUN, *steps(60, 20)), nodes=[CONTROL_PLANE, node("worker1"), node("worker2", ready=False)])
    assert [(each.part, each.code) for each in judge(seen).findings] == [
        ("cause", "node_not_ready"),
        ("follows", "silent"),
    ]


def test_pods_that_wait_for_the_same_are_one_finding() -> None:
    taint = [{"key": "mine", "effect": "NoSchedule"}]
    nodes = [CONTROL_PLANE, node("worker1", taints=taint), node("worker2", taints=taint)]
    (finding,) = judge(look([*PODS[:2], unplaced("worker"), unplaced("worker", 1)], nodes=nodes)).findings
    assert finding.object == "worker-0, worker-1"


REFUSED = Unread("/api/v1/nodes", 403, "nodes is forbidden (status 403)")


@pytest.mark.parametrize(
    ("part", "seen", "status"),
    [
        # A pod waits for a node, and nodes may not be read.
        ("nodes", look([*PODS[:3], unplaced("worker", 1)]), UNKNOWN),
        ("pods", look(), UNKNOWN),
        ("jobs", look([], "", jobs=[]), UNKNOWN),
        ("events", look([*PODS[:3], waiting("worker", 1)]), UNKNOWN),
        ("policies", look(log=said(("start", 60.0))), UNKNOWN),
        ("elsewhere", look([*PODS[:3], unplaced("worker", 1)]), UNKNOWN),
        # Nothing asks for them while the run goes on well.
        ("policies", look(), WELL),
        ("claims", look(), WELL),
        ("leases", look(), WELL),
        # What was found lies below what claims could tell.
        ("policies", look([*PODS[:3], unplaced("worker", 1)], nodes=[node("worker1", ready=False)]), FOUND),
    ],
)  # fmt: skip
def test_what_is_decisive_and_unread_is_named_and_never_guessed(part: str, seen: Snapshot, status: int) -> None:
    answer = judge(replace(seen, parts={**seen.parts, part: REFUSED}))
    assert answer.status == status, (answer.headline, [each.code for each in answer.findings])
    assert (part in {each.what for each in answer.unread}) == (status == UNKNOWN)
    assert status != UNKNOWN or f"unread    {part}" in text(answer)


def test_a_log_that_cannot_be_read_is_named() -> None:
    name = PODS[0]["metadata"]["name"]
    answer = judge(replace(look(), logs={name: Unread("/log", 500, "dial tcp: no route to host")}))
    assert (answer.status, [each.what for each in answer.unread]) == (UNKNOWN, [f"log of {name}"])


def test_an_unknown_run_names_those_that_there_are() -> None:
    answer = judge(Snapshot("mnst", "", NOW.isoformat(), ["cnn", "mnist"]))
    assert (answer.state, answer.status) == ("absent", FOUND)
    assert text(answer).startswith("there is no run mnst\ncause     absent       the runs are cnn, mnist\n")


def gone(**more: Any) -> Snapshot:
    return look([], "", live=None, jobs=[], record=record("failed", ended_at=ago(60), **more))


def test_a_failed_run_whose_pods_are_gone_keeps_its_cause() -> None:
    kept = judge(held()).as_json()
    assert [each.code for each in judge(gone(why="not all pods ran", cause=kept)).findings] == ["held_by"]
    words = judge(gone(why="not all pods ran within start_timeout, 300 s\nmore"))
    assert words.findings[0].evidence[0].text == "not all pods ran within start_timeout, 300 s"
    silent = judge(gone())
    assert (silent.status, silent.findings) == (UNKNOWN, [])


@pytest.mark.parametrize(
    "cause", [5, {}, {"findings": 3}, {"findings": [{"code": "x"}]}, {"findings": [{"evidence": [1]}]}]
)
def test_a_record_that_somebody_has_altered_is_no_error(cause: Any) -> None:
    assert judge(gone(why="bad", cause=cause)).findings[0].evidence[0].text == "bad"


def test_a_run_that_was_deleted_by_somebody_else() -> None:
    answer = judge(look([], "", live=None, jobs=[], record=record("running")))
    assert [each.code for each in answer.findings] == ["deleted"]


def test_a_run_whose_end_is_not_known_cannot_be_told() -> None:
    answer = judge(look([], "", live=None, jobs=[], record=record("unknown", why="its log is not read")))
    assert (answer.status, answer.unread[0].reason) == (UNKNOWN, "its log is not read")


def test_a_snapshot_comes_back_from_its_file() -> None:
    for seen in (held(), replace(look(), parts={**look().parts, "nodes": REFUSED})):
        again = load(json.dumps(seen.as_json()))
        assert judge(again) == judge(seen)
    for broken in ("", "[]", "{}", '{"schema": 0}', '{"schema": 1}'):
        with pytest.raises(TrainyardError, match="no snapshot"):
            load(broken)


def test_nothing_from_a_log_moves_the_terminal() -> None:
    mine = over("chief", 2)
    evil = said(("error", 5.0, {"message": "\x1b[2Jgone\r\n\x9b"}))
    seen = look([mine, *PODS[1:]], {mine["metadata"]["name"]: evil}, live(status={"terminalState": "Failed"}))
    assert "gone" in text(judge(seen)) and not any(sign in text(judge(seen)) for sign in "\x1b\r\x9b")


def test_an_explanation_never_fails() -> None:
    odd = look([{**pod("chief"), "status": {"containerStatuses": 5}}])
    assert explain(odd).status == UNKNOWN
    assert explain(look(live=5)).status == UNKNOWN
    assert explain(look()).status == WELL


def test_codes_are_ordered_and_explained() -> None:
    assert [rule.layer for rule in TABLE] == sorted(rule.layer for rule in TABLE)
    assert len({rule.code for rule in TABLE}) == len({rule.find for rule in TABLE}) == len(TABLE)
    assert all(rule.meaning.endswith(".") and rule.remedy.endswith(".") for rule in TABLE)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (45.9, "45 s"), (130, "2 min 10 s"), (120, "2 min"), (11100, "3 h 5 min"), (187200, "2 d 4 h")],
)
def test_spans(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_estimates() -> None:
    assert [about(each) for each in (0.2, 40, 420, 7200)] == ["about 1 s", "about 40 s", "about 7 min", "about 2.0 h"]
    assert GPU in TEXT
