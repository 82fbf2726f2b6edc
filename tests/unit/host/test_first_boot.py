"""A host that has just started: cloud-init and another dpkg are waited for, and named at the limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.host import first_boot
from trainyard.host.first_boot import busy, wait

HOLD = """
import fcntl, sys, time
lock = open(sys.argv[1], "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


class Clock:
    """Counts the seconds that were slept, and calls a function at each sleep."""

    def __init__(self, at_sleep=lambda: None) -> None:
        self.now, self.at_sleep = 0.0, at_sleep

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.at_sleep()


def put(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the package manager, as apt does."""
    put(tmp_path, "var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock")
    command = [sys.executable, "-c", HOLD, str(tmp_path / "var/lib/dpkg/lock-frontend")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "held\n"
        (tmp_path / "proc").symlink_to("/proc")
        yield process
        process.kill()


def test_a_host_without_cloud_init_and_with_free_locks_is_ready(tmp_path: Path) -> None:
    assert busy(tmp_path) is None
    assert busy(put(tmp_path, "var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock")) is None
    assert wait(0, tmp_path) is None


def test_cloud_init_is_waited_for(tmp_path: Path) -> None:
    put(tmp_path, "run/cloud-init/enabled")
    clock = Clock(at_sleep=lambda: clock.now < 10 or put(tmp_path, "run/cloud-init/result.json"))
    assert wait(600, tmp_path, clock) is None
    assert clock.now == 10


def test_cloud_init_that_does_not_finish_is_named_at_the_limit(tmp_path: Path) -> None:
    clock = Clock()
    found = wait(60, put(tmp_path, "run/cloud-init/enabled"), clock)
    assert found and (found.code, clock.now) == ("first_boot", 60)
    assert "cloud-init has not finished after 60 s" in found.cause and "base_first_boot_timeout" in found.remedy


def test_the_holder_of_the_lock_is_waited_for_and_named(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    found = busy(tmp_path)
    assert found and found.code == "packages_busy"
    assert f"(process {holder.pid}) still holds /var/lib/dpkg/lock-frontend after 0 s" in found.cause

    def end() -> None:
        if clock.now >= 4:
            holder.kill()
            holder.wait()

    clock = Clock(at_sleep=end)
    assert wait(600, tmp_path, clock) is None
    assert clock.now == 4


def test_asking_takes_no_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """A program that starts while a check looks must not find the lock taken."""
    assert busy(tmp_path) is not None
    holder.kill()
    holder.wait()
    assert busy(tmp_path) is None


def test_a_module_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = first_boot.reason("first_boot", waited=3)
    monkeypatch.setattr(first_boot, "wait", lambda _: found)
    with pytest.raises(TrainyardError, match=r"^Cloud-init has not finished after 3 s\. Find") as error:
        first_boot.require_idle(3)
    assert error.value.facts["reasons"] == [found.as_dict()]
