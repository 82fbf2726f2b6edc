"""The lock of the machine, between real processes: one gets it, and the kernel gives it back."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.locks.samples import Ticking
from trainyard.core.errors import TrainyardError
from trainyard.site_lock import holder, machine_lock
from trainyard.site_lock.holder import Busy

ROOT = Path(__file__).parents[3]
HOLD = """
import sys
from pathlib import Path
from trainyard.site_lock import machine_lock
try:
    held = machine_lock.acquire("/srv/mine", "reprovision", "run-2", where=Path(sys.argv[1]))
except machine_lock.Busy:
    print("busy", flush=True)
else:
    print("held", flush=True)
    sys.stdin.readline()
    held.release()
"""

Run = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Starts a process that wants the lock of /srv/mine and keeps it until it may read a line."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(tmp_path)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_a_second_process_is_told_who_the_first_is(tmp_path: Path, run: Run) -> None:
    other = run()
    assert said(other) == "held"
    with pytest.raises(Busy) as caught:
        machine_lock.acquire("/srv/mine", "site", "run-1", where=tmp_path)
    found = caught.value.holder
    assert found is not None
    assert (found.verb, found.run_id, found.pid) == ("reprovision", "run-2", other.pid)
    assert f"reprovision by {found.user} on {found.host}, process {other.pid}" in caught.value.message
    assert machine_lock.holder("/srv/mine", tmp_path) == found
    # Another site of this machine is not concerned.
    machine_lock.acquire("/srv/other/mine", "site", "run-1", where=tmp_path).release()


def test_the_kernel_gives_back_what_a_killed_process_held(tmp_path: Path, run: Run) -> None:
    other = run()
    assert said(other) == "held"
    other.kill()
    other.wait()
    assert machine_lock.holder("/srv/mine", tmp_path) is None
    with machine_lock.acquire("/srv/mine", "site", "run-1", where=tmp_path) as mine:
        assert machine_lock.holder("/srv/mine", tmp_path) == mine.holder
    assert machine_lock.holder("/srv/mine", tmp_path) is None
    assert mine.path.read_text(encoding="utf-8") == ""


def test_of_eight_at_once_one_gets_it(tmp_path: Path) -> None:
    forked = multiprocessing.get_context("fork")
    together, answers = forked.Barrier(8), forked.Queue()

    def wants() -> None:
        together.wait(60)
        try:
            with machine_lock.acquire("/srv/mine", "site", "run", where=tmp_path):
                answers.put("held")
                together.wait(60)
        except Busy:
            answers.put("busy")
            together.wait(60)

    processes = [forked.Process(target=wants) for _ in range(8)]
    for process in processes:
        process.start()
    assert sorted(answers.get(timeout=60) for _ in processes) == ["busy"] * 7 + ["held"]
    for process in processes:
        process.join(60)


def test_a_living_run_whose_keeper_was_killed_is_not_robbed(tmp_path: Path, run: Run) -> None:
    other = run()
    assert said(other) == "held"
    # A keeper that took the lock for that process, and is gone without having given it back.
    kept = machine_lock.acquire("/srv/kept", "site", "run-2", pid=other.pid, where=tmp_path)
    kept._stream.close()
    with pytest.raises(Busy, match=f"process {other.pid}"):
        machine_lock.acquire("/srv/kept", "site", "run-1", where=tmp_path)
    other.kill()
    other.wait()
    machine_lock.acquire("/srv/kept", "site", "run-1", where=tmp_path).release()


def test_the_last_words_of_a_run_that_has_ended_are_waited_for(tmp_path: Path, run: Run) -> None:
    ended = run()
    assert said(ended) == "held"
    kept = machine_lock.acquire("/srv/kept", "site", "run-2", pid=ended.pid, where=tmp_path)
    ended.kill()
    ended.wait()
    clock = Ticking(during=lambda: kept.release() if clock.now > 1003 else None)
    machine_lock.acquire("/srv/kept", "site", "run-1", where=tmp_path, clock=clock).release()
    assert 1003 < clock.now < 1004


def test_a_lock_of_nobody_is_waited_for_with_a_bound(tmp_path: Path) -> None:
    kept = machine_lock.acquire("/srv/mine", "site", "run-2", where=tmp_path)
    kept.note(pid=0)
    clock = Ticking()
    with pytest.raises(Busy, match="is locked by an unknown process"):
        machine_lock.acquire("/srv/mine", "site", "run-1", where=tmp_path, clock=clock)
    assert clock.now - 1000.0 == pytest.approx(machine_lock.LAST_WORDS_SECONDS, abs=0.2)


@pytest.mark.parametrize(
    ("change", "alive"), [({}, True), ({"started": 1}, False), ({"boot": "another"}, False), ({"pid": 0}, False)]
)
def test_a_process_is_told_from_a_later_one_of_its_number(change: dict[str, object], alive: bool) -> None:
    me = holder.here("site", "run-1", 0.0)
    assert me.pid == os.getpid()
    assert replace(me, **change).alive is alive  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"verb": "site"}', '{"verb": 1, "pid": []}'])
def test_a_file_that_names_nobody(text: str) -> None:
    assert holder.parse(text) is None


def test_a_site_is_its_folder_whatever_leads_there(tmp_path: Path) -> None:
    folder, link = tmp_path / "my site", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    assert machine_lock.path_of(str(folder)) == machine_lock.path_of(f"{link}/") != machine_lock.path_of(str(tmp_path))
    assert machine_lock.path_of(str(folder)).name.startswith("my-site-")


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(TrainyardError, match="belongs to another user"):
        machine_lock.acquire("/srv/mine", "site", "run-1", where=tmp_path)


def test_a_link_in_the_place_of_the_folder_leads_nowhere(tmp_path: Path) -> None:
    """Every user may make one in /run/lock, before root makes the folder there."""
    (tmp_path / "roots").mkdir()
    (tmp_path / "locks").symlink_to("roots")
    with pytest.raises(TrainyardError, match="is a link, or"):
        machine_lock.acquire("/srv/site", "site", "run-1", where=tmp_path / "locks")
    assert not list((tmp_path / "roots").iterdir())
