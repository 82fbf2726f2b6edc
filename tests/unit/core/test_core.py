"""Plan, command, wait and progress: what every module stands on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from trainyard.core.command import FIRST_LINES, LAST_LINES, run
from trainyard.core.errors import CommandError, TrainyardError, WaitError
from trainyard.core.plan import Plan, Step
from trainyard.core.progress import Progress
from trainyard.core.runner import run_plan
from trainyard.core.waiter import wait_until

ROOT = Path(__file__).resolve().parents[3]


def test_a_plan_without_steps_changes_nothing() -> None:
    plan = Plan([], {"state": "present"}, {"state": "present"})
    assert not plan.changed
    assert plan.diff() == {"before": {"state": "present"}, "after": {"state": "present"}, "prepared": ""}


def test_a_plan_shows_its_steps_and_executes_them_in_order() -> None:
    done: list[str] = []
    plan = Plan([Step("Create a", lambda: done.append("a")), Step("Create b", lambda: done.append("b"))], {}, {"x": 1})
    assert plan.changed
    assert plan.diff() == {"before": {}, "after": {"x": 1}, "prepared": "Create a\nCreate b\n"}
    assert done == []
    plan.execute()
    assert done == ["a", "b"]


def test_a_failing_step_ends_the_plan() -> None:
    done: list[str] = []

    def fail() -> None:
        raise TrainyardError("It is broken.", remedy="Mend it.")

    with pytest.raises(TrainyardError, match=r"It is broken\. Mend it\."):
        Plan([Step("Fail", fail), Step("Go on", lambda: done.append("after"))]).execute()
    assert done == []


class Left(Exception):
    """A module that has ended, with what it returned."""


class Module:
    """What the runner uses of AnsibleModule."""

    check_mode = False

    def exit_json(self, **result: object) -> None:
        raise Left(result)

    fail_json = exit_json


@pytest.mark.parametrize(("failing", "done"), [(0, []), (2, ["Do 0", "Do 1"])])
def test_a_failure_tells_what_was_done_before_it(failing: int, done: list[str]) -> None:
    def act(number: int) -> None:
        if number == failing:
            raise TrainyardError("It is broken.")

    steps = [Step(f"Do {number}", partial(act, number)) for number in range(4)]
    with pytest.raises(Left) as left:
        run_plan(Module(), lambda: Plan(steps))
    result = left.value.args[0]
    assert (result["msg"], result["steps_done"], result["changed"]) == ("It is broken.", done, bool(done))


def test_a_command_returns_its_output() -> None:
    result = run(["sh", "-c", "cat; echo $WORD >&2"], timeout=10, env={"WORD": "hello"}, stdin=b"input")
    assert (result.stdout, result.stderr) == ("input", "hello\n")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["sh", "-c", "echo reason >&2; exit 3"], "ended with status 3: reason"),
        (["sh", "-c", "echo only output; exit 1"], "ended with status 1: only output"),
        (["/nonexistent/program"], "cannot be started"),
    ],
)
def test_a_failing_command_says_why(argv: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(argv, timeout=10)


def test_an_expected_status_is_no_error() -> None:
    assert run(["sh", "-c", "exit 4"], timeout=10, ok=(0, 4)).returncode == 4


def test_an_error_quotes_the_first_and_the_last_lines() -> None:
    with pytest.raises(CommandError) as caught:
        run(["sh", "-c", "seq 100; exit 1"], timeout=10)
    head, *lines = caught.value.message.split("\n")
    assert head.endswith(": 1")
    assert lines == ["2", "3", "4", "5", "... 80 lines left out ...", *map(str, range(86, 101))]
    with pytest.raises(CommandError) as caught:
        run(["sh", "-c", f"seq {FIRST_LINES + LAST_LINES + 1}; exit 1"], timeout=10)
    assert "left out" not in caught.value.message


def test_a_command_that_hangs_is_ended_with_its_children() -> None:
    began = time.monotonic()
    with pytest.raises(CommandError, match="did not end within 1 s"):
        run(["sh", "-c", "sleep 60 & sleep 60"], timeout=1)
    assert time.monotonic() - began < 30


def test_a_child_that_left_the_session_does_not_stretch_the_limit() -> None:
    began = time.monotonic()
    with pytest.raises(CommandError, match="did not end within 1 s: on its way"):
        run(["sh", "-c", "echo on its way; setsid sleep 25 & exec sleep 25"], timeout=1)
    assert time.monotonic() - began < 15


def test_a_program_that_leaves_a_daemon_on_its_output_has_ended() -> None:
    began = time.monotonic()
    assert run(["sh", "-c", "setsid sleep 25 & echo started"], timeout=20).stdout == "started\n"
    assert time.monotonic() - began < 15


def test_much_input_and_output_are_complete() -> None:
    data = b"0123456789abcdef" * 200_000
    result = run(["sh", "-c", "tee /dev/stderr"], timeout=30, stdin=data)
    assert len(result.stdout) == len(result.stderr) == len(data)


@pytest.mark.parametrize("outlives", [True, False])
def test_what_becomes_of_a_program_when_its_caller_is_killed(outlives: bool, tmp_path: Path) -> None:
    """The caller is a process of its own that starts `sleep`, which writes its number first."""
    path = tmp_path / "pid"
    script = f"""
from trainyard.core.command import run
run(["sh", "-c", "echo $$ > {path}.new; mv {path}.new {path}; exec sleep 60"], timeout=60, outlives={outlives})
"""
    with subprocess.Popen([sys.executable, "-c", script]) as caller:
        wait_until(path.exists, bool, what="the program to start", timeout=20, interval=0.05)
        caller.kill()
    program = Path(f"/proc/{int(path.read_text())}")
    try:
        if outlives:
            time.sleep(0.3)
            assert program.exists()
        else:
            wait_until(program.exists, lambda there: not there, what="the program to go", timeout=5, interval=0.05)
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(program.name), signal.SIGKILL)


def test_a_wait_returns_the_state_that_it_waited_for() -> None:
    states = iter(["starting", "starting", "ready"])
    assert wait_until(lambda: next(states), lambda state: state == "ready", what="x", timeout=5, interval=0) == "ready"


def test_a_wait_that_runs_out_tells_the_last_state() -> None:
    with pytest.raises(WaitError, match="Waited 0 s for the door to open; last state: shut"):
        wait_until(lambda: "shut", lambda state: False, what="the door to open", timeout=0)
    with pytest.raises(WaitError, match="last state: 1 door") as caught:
        wait_until(lambda: ["x"], lambda _: False, what="no door", timeout=0, show=lambda doors: f"{len(doors)} door")
    assert caught.value.facts["last_state"] == "1 door"


def test_progress_appends_lines_and_is_silent_without_a_file(tmp_path) -> None:
    path = tmp_path / "progress"
    progress = Progress(str(path))
    progress.say("one")
    progress.say("two")
    Progress(None).say("nobody hears")
    assert path.read_text() == "one\ntwo\n"


def test_folders_that_a_module_makes_are_writable_for_its_user_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with pytest.raises(Left):
            run_plan(Module(), lambda: Plan([Step("Make a folder", (tmp_path / "state").mkdir)]))
    finally:
        os.umask(before)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o755
