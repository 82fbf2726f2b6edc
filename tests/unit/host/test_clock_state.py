"""host_preflight: whether another time service keeps the clock, so that chrony does not take its place."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest
import yaml

from tests.unit.host.test_facts import make_root
from trainyard.host import facts

VARIABLES = Path(__file__).parents[3] / "roles/base/vars/main.yml"


class Timex(ctypes.Structure):
    """Beginning of `struct timex` as linux/timex.h has it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
    )


def kernel(monkeypatch: pytest.MonkeyPatch, state: int, status: int) -> None:
    """A kernel that answers so."""

    def adjtimex(pointer: object) -> int:
        timex = ctypes.cast(pointer, ctypes.POINTER(Timex)).contents
        assert timex.modes == 0, "nothing is set"
        timex.status = status
        return state

    monkeypatch.setattr(facts.ctypes, "CDLL", lambda *_, **__: SimpleNamespace(adjtimex=adjtimex))


class Time:
    """A clock that counts."""

    def __init__(self, now: float) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("state", "status", "expected"), [(0, 0x2001, True), (5, 0x0041, False), (0, 0x0040, False), (-1, 0, False)]
)
def test_the_kernel_says(monkeypatch: pytest.MonkeyPatch, state: int, status: int, expected: bool) -> None:
    kernel(monkeypatch, state, status)
    assert facts.is_synchronised() is expected


def test_this_kernel_answers() -> None:
    assert facts.is_synchronised() in (True, False)


@pytest.mark.parametrize(
    ("files", "synchronised", "expected"),
    [
        ([], True, True),
        ([], False, False),
        (["run/systemd/timesync/synchronized"], False, True),
        (["usr/sbin/chronyd"], True, False),
        (["usr/sbin/chronyd", "run/systemd/timesync/synchronized"], True, False),
    ],
)
def test_a_clock_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], synchronised: bool, expected: bool
) -> None:
    monkeypatch.setattr(facts, "is_synchronised", lambda: synchronised)
    root = Path(make_root(tmp_path, **dict.fromkeys(files, "")))
    time = Time(5.0)
    assert facts.is_kept(root, time) is expected
    assert time.now == 5.0
    assert facts.observe([], str(root)).clock_kept is expected


@pytest.mark.parametrize(
    ("booted", "works_at", "expected"), [(4.0, 9.0, True), (4.0, 99.0, False), (31.0, 35.0, False)]
)
def test_timesyncd_gets_a_moment_after_the_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booted: float, works_at: float, expected: bool
) -> None:
    time = Time(booted)
    monkeypatch.setattr(facts, "is_synchronised", lambda: time.now >= works_at)
    (tmp_path / "run/systemd/timesync").mkdir(parents=True)
    assert facts.is_kept(tmp_path, time) is expected
    assert time.now <= max(booted, facts.BOOT_SECONDS + 1)


@pytest.mark.parametrize(
    ("sync", "settable", "kept", "servers", "chrony"),
    [
        ("auto", True, False, [], True),
        ("auto", True, True, [], False),
        ("auto", True, True, ["192.0.2.1"], True),
        ("auto", False, False, ["192.0.2.1"], False),
        ("always", False, True, [], True),
        ("never", True, False, ["192.0.2.1"], False),
    ],
)
def test_where_the_role_runs_chrony(sync: str, settable: bool, kept: bool, servers: list[str], chrony: bool) -> None:
    expression = yaml.safe_load(VARIABLES.read_text(encoding="utf-8"))["__base_chrony"]
    host = {"clock_settable": settable, "clock_kept": kept}
    variables = {"base_time_sync": sync, "base_ntp_servers": servers, "__base_preflight": {"host": host}}
    assert jinja2.Template(expression).render(variables) == str(chrony)
