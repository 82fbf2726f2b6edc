"""Tests of evaluations during the training, as processes on the loopback interface."""

from __future__ import annotations

import signal

import pytest

from engine.loop.export_test import stranger_says
from engine.run.run_folder import steps
from tests.trainings.processes import START_SECONDS, Processes
from tests.trainings.tensorboard_events import shown

pytest.importorskip("tensorflow")


@pytest.fixture
def processes(tmp_path):
    made = Processes(tmp_path, preloaded=True)
    yield made
    made.kill()


def judged(processes):
    """Return the steps that the evaluator has judged."""
    return [event["step"] for event in processes.events("evaluate", "evaluator.jsonl")]


def once(found):
    return len(set(found)) == len(found) > 0


@pytest.mark.slow
@pytest.mark.parametrize("evaluator", [True, False], ids=["evaluator", "chief alone"])
def test_a_run_that_learns_no_more_ends_early_and_well(processes, evaluator):
    told = ("--train_steps", "100000", "--patience", "2", "--accuracy_bound", "0.9")
    if evaluator:
        processes.start("evaluator", 0, *told)
    chief = processes.start_all(*told)
    assert chief.wait(START_SECONDS) == 0
    end = processes.events("end")[-1]
    assert end["stopped_early"] and end["result"] == "passed"
    assert processes.saved() == end["step"] < end["steps_total"] == 100000

    by_chief = [event["step"] for event in processes.events("evaluate")]
    if evaluator:
        assert processes.running["evaluator0"].wait(30) == 0
        assert by_chief == [end["step"]]
    else:
        assert by_chief == [200, 400, 600]
    by_all = judged(processes) if evaluator else by_chief
    assert len(by_all) >= 3 and by_all[-1] == end["step"]
    assert steps(processes.logs / "best") == [by_all[0]] == [end["accuracy_step"]]
    assert [event["step"] for event in processes.events("export")] == [by_all[0]]
    curve = [step for step, name, _ in shown(processes.logs / "attempts/first/eval") if name == "accuracy"]
    assert curve == by_all

    kind, shape, answer = stranger_says(processes.logs / "export")
    assert (kind, shape, [len(each) for each in answer]) == ("uint8", [None, 784], [10, 10, 10])


@pytest.mark.slow
def test_no_step_is_judged_or_drawn_twice(processes):
    evaluator = processes.start("evaluator", 0)
    processes.start_all("--train_steps", "0")
    processes.wait(lambda: judged(processes))
    evaluator.terminate()
    assert evaluator.wait(20) == 42
    before = len(judged(processes))
    evaluator = processes.start("evaluator", 0)
    processes.wait(lambda: len(judged(processes)) >= before + 2)
    # The chief, the ps and the workers die, and steps after the last checkpoint are repeated.
    processes.wait_step(processes.saved() + 40)
    processes.kill("chief0", "ps0", "worker0", "worker1")
    saved = processes.saved()

    chief = processes.start_all("--train_steps", str(saved + 600))
    assert chief.wait(START_SECONDS) == 0
    assert evaluator.wait(30) == 0
    assert processes.events("restore")[-1]["step"] == saved
    assert once(judged(processes)) and judged(processes)[-1] == saved + 600
    for part, name in (("train", "loss"), ("eval", "accuracy")):
        assert once([step for step, tag, _ in shown(processes.logs / "attempts/first" / part) if tag == name])


@pytest.mark.slow
def test_an_evaluator_that_fails_leaves_the_judging_to_the_chief_and_ends_nothing(processes):
    evaluator = processes.start("evaluator", 0, "--hidden_units", "50")
    chief = processes.start_all("--train_steps", "0")
    processes.wait(lambda: processes.events("error", "evaluator.jsonl"))
    assert "does not fit" in processes.events("error", "evaluator.jsonl")[-1]["message"]
    processes.wait(lambda: processes.events("evaluate"))
    assert (evaluator.poll(), chief.poll()) == (None, None)
    evaluator.terminate()
    assert evaluator.wait(20) == 42


@pytest.mark.slow
def test_of_two_evaluators_the_older_ends(processes):
    def starts():
        return len(processes.events("start", "evaluator.jsonl"))

    old = processes.start("evaluator")
    processes.wait(starts)
    old.send_signal(signal.SIGSTOP)
    processes.start("evaluator")
    processes.wait(lambda: starts() == 2)
    old.send_signal(signal.SIGCONT)
    assert old.wait(10) == 42
    new = processes.running["evaluator0"]
    assert new.poll() is None
    new.terminate()
    assert new.wait(20) == 42
