"""Report of the CPU seconds of a test run by file, because minutes differ between machines by a factor of three."""

from __future__ import annotations

import os
import resource
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

LEAST = 10.0
"""CPU seconds below which a file is not listed."""

APART: defaultdict[str, float] = defaultdict(float)
"""CPU seconds of processes that ran beside the tests, by name."""

_STAT = Path("/proc/stat")


def own() -> float:
    """Return the CPU seconds of this process and of its ended children, without those of `APART`."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) - sum(APART.values())


def wait(process: subprocess.Popen[str], name: str) -> float:
    """Wait for a process that runs beside the tests, and return its CPU seconds. They count under its own name."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    APART[name] += seconds
    return seconds


def machine() -> float:
    """Return the busy CPU seconds of this machine since its start, the nodes of labs included."""
    # user, nice, system, idle, iowait, irq, softirq: see proc_stat(5).
    counters = [int(each) for each in _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:8]]
    return (sum(counters) - counters[3] - counters[4]) / os.sysconf("SC_CLK_TCK")


class CpuSeconds:
    """Sums the CPU seconds of all tests by file, and shows them after the last test."""

    def __init__(self) -> None:
        self.used: defaultdict[str, float] = defaultdict(float)
        self.machine = machine()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = own()
        try:
            return (yield)
        finally:
            self.used[item.nodeid.split("::")[0]] += own() - before

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("CPU seconds by file")
        for file, seconds in sorted((self.used | APART).items(), key=lambda pair: -pair[1]):
            if seconds >= LEAST:
                terminalreporter.write_line(f"{seconds:7.0f} {file}")
        total = machine() - self.machine
        ours = own() + sum(APART.values())
        terminalreporter.write_line(f"{ours:7.0f} of this process and its children, {total:.0f} of the whole machine")
