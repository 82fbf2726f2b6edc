"""Results of `gpu-proof`, as text and as JSON, and its exit status."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...core.untrusted import clean, line, plain

SCHEMA = 1
PASS, FAIL, NOT_RUN = "pass", "fail", "not_run"
STATUS = {PASS: 0, FAIL: 1, NOT_RUN: 2}
"""Exit status by result: 1 if a stage failed, else 2 if one did not run, else 0."""
DETAIL_LIMIT = 2_000
"""Characters of a stage's detail."""


@dataclass(frozen=True)
class Result:
    """The result of a stage.

    :param result: `PASS`, `FAIL` or `NOT_RUN`. A stage does not run if its means are missing, such as a Python with
        TensorFlow; a missing driver or GPU is a failure.
    :param detail: the proven fact, the fault, or the reason and its remedy.
    :param figures: measured values with their unit in the name; JSON types.
    """

    result: str
    detail: str
    figures: Mapping[str, Any] = field(default_factory=dict)


def passed(detail: str, **figures: Any) -> Result:
    """Return the result of a proven stage."""
    return Result(PASS, detail, figures)


def failed(detail: str, **figures: Any) -> Result:
    """Return the result of a stage that found a fault."""
    return Result(FAIL, detail, figures)


def not_run(detail: str) -> Result:
    """Return the result of a stage without its means."""
    return Result(NOT_RUN, detail)


def judged(faults: Sequence[str], proven: str, **figures: Any) -> Result:
    """Return a failure with all faults, or a pass."""
    return failed("; ".join(faults), **figures) if faults else passed(proven, **figures)


@dataclass(frozen=True)
class Kit:
    """The files that the stages use.

    :param root: folder of an unpacked kit.
    :param work: empty folder for temporary files, removed at the end.
    :param environment: variables of the call, such as `GPU_PROOF_PYTHON`.
    """

    root: Path
    work: Path
    environment: Mapping[str, str]

    def program(self, name: str) -> str:
        """Return the path of one of the kit's programs."""
        return str(self.root / "bin" / name)


Stage = Callable[[Kit], Result]


@dataclass
class Report:
    """All results in order, with the time of each stage in seconds."""

    date: str
    stages: list[tuple[str, Result, float]] = field(default_factory=list)

    @property
    def result(self) -> str:
        """Return the result of the whole: the worst of the stages. Without any stage, nothing was proven."""
        found = {result.result for _, result, _ in self.stages} or {NOT_RUN}
        return next(each for each in (FAIL, NOT_RUN, PASS) if each in found)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        stages = [
            {"stage": name, **asdict(result), "seconds": round(seconds, 1)} for name, result, seconds in self.stages
        ]
        whole = {"schema": SCHEMA, "date": self.date, "host": host(), "result": self.result, "stages": stages}
        return dict(plain(whole))


def text(name: str, result: Result, seconds: float) -> str:
    """Return a stage's line; values that a host or program reported are cleaned."""
    figures = ", ".join(
        f"{key} {value}" for key, value in result.figures.items() if isinstance(value, (int, float, str))
    )
    detail = line(f"{result.detail} ({figures})" if figures else result.detail, DETAIL_LIMIT)
    return clean(f"{name:<11} {result.result:<8} {seconds:6.1f} s  {detail}")


def host(root: Path = Path("/")) -> dict[str, Any]:
    """Return the description of this host without its name, because reports are published."""
    return {
        "system": _field(root / "etc/os-release", "PRETTY_NAME=").strip('"'),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processor": _field(root / "proc/cpuinfo", "model name").lstrip(" \t:"),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
    }


def _field(path: Path, start: str) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return next((line(each[len(start) :], 200) for each in stream if each.startswith(start)), "")
    except OSError:
        return ""
