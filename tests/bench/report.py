"""The generated part of docs/benchmarks.md, made from results."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import yaml
from inputs import ROOT
from memory import Peak
from sides import Hand, Result, Site

BEGIN, END = "<!-- generated -->", "<!-- /generated -->"
HEAD = f"# Benchmarks\n\n{BEGIN}\n{END}\n"
TASKS = 15
GIB = 1 << 30
NO_ROLE = "(playbooks)"


def profile(log: str) -> list[tuple[str, float]]:
    """Return the tasks of a run with their seconds, longest first, from a log with ansible.posix.profile_tasks.

    A task that ran several times has one line each time.
    """
    recap = log[log.rfind("PLAY RECAP") :]
    lines = re.findall(r"(?m)^(\S.*?) -+ *([\d.]+)s$", recap)
    return sorted(((name, float(seconds)) for name, seconds in lines), key=lambda line: -line[1])


def by_role(tasks: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the seconds of all tasks of each role, longest first; a task's name begins with its role's."""
    sums: dict[str, float] = {}
    for name, seconds in tasks:
        role, colon, _ = name.partition(" : ")
        key = role if colon else NO_ROLE
        sums[key] = sums.get(key, 0.0) + seconds
    return sorted(sums.items(), key=lambda entry: -entry[1])


def spread(values: Sequence[float], unit: str = " s", digits: int = 1) -> str:
    """Return median and range, or a dash without values."""
    if not values:
        return "-"
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f}{unit} ({low:.{digits}f} to {high:.{digits}f})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table. Bars in cells are escaped: task names of included files contain them."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine() -> list[str]:
    """Return a description of the measured machine."""
    info = dict(
        line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines() if ":" in line
    )
    memory = int(info["MemTotal"].split()[0]) / (1 << 20)
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "?")
    cgroup = 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1
    lock = yaml.safe_load((ROOT / "bundle.lock.yml").read_text(encoding="utf-8"))["artefacts"]
    locked = ", ".join(
        f"{name} {str(lock[name]['version']).removeprefix('v')}"
        for name in ("kubernetes", "containerd", "runc", "jobset", "tensorflow_wheels")
    )
    cpu = f"{os.cpu_count()} cores, {memory:.0f} GiB of memory"
    engine = _first(["podman", "--version"])
    calico = str(lock["image_calico_node"]["version"]).removeprefix("v")
    return [
        f"- Date: {datetime.now(UTC):%Y-%m-%d}",
        f"- Machine: {cpu}, kernel {platform.release().partition('-')[0]}, {system}, cgroup version {cgroup}",
        f"- Controller: ansible-core {version('ansible-core')}, Python {platform.python_version()}, {engine}",
        f"- Nodes (locked): {locked}, Calico {calico}",
    ]


def _first(command: list[str]) -> str:
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    return said.splitlines()[0] if said else f"{command[0]} ?"


def measures(results: Sequence[Result]) -> str:
    """Return the table that compares the sides; ratios are taken pair by pair."""
    site = [result for result in results if result.side == Site.name]
    hand = [result for result in results if result.side == Hand.name]
    pairs = list(zip(site, hand, strict=False))

    def row(what: str, value: Callable[[Result], float], unit: str, digits: int = 1) -> list[str]:
        return [what, *(spread([value(result) for result in side], unit, digits) for side in (hand, site))]

    rows = [
        row("no lab to a passed training", lambda result: result.seconds, " s"),
        ["the same, times by hand", "1", spread([a.seconds / b.seconds for a, b in pairs], "", 2)],
        ["second run, nothing changed, no pod restarted", "-", spread([result.second for result in site])],
        ["second run, part of the first", "-", spread([result.second / result.seconds for result in site], "", 2)],
        ["200 steps with the seed's knobs, apply to completion", "-", spread([result.seed for result in site])],
        row("peak memory of the lab, working set", lambda result: result.peak.working_set / GIB, " GiB", 2),
        row("peak memory of the lab, resident", lambda result: result.peak.resident / GIB, " GiB", 2),
        row("accuracy on the held-out images", lambda result: result.accuracy, "", 4),
        row("load of the machine just before", lambda result: result.load, "", 1),
    ]
    return table(["", *(f"{name}, median (range)" for name in ("by hand", "site.yml"))], rows)


def render(results: Sequence[Result]) -> str:
    """Return the whole generated part.

    :param results: in the order of the runs.
    """
    site = sorted((result for result in results if result.side == Site.name), key=lambda result: result.seconds)
    hand = [result for result in results if result.side == Hand.name]
    parts = [
        "\n".join(machine()),
        f"Runs in turn, {len(site)} of site.yml and {len(hand)} by hand, each from no lab with a complete bundle; the "
        "nodes' image was in the container engine's storage. Memory is that of the four containers' control groups, "
        "sampled once a second: the working set is usage less inactive file cache, resident is anonymous memory and "
        "mapped files. By hand there is no validation, no SSH, no probe of the network policy and no verification.",
        measures(results),
    ]
    if hand:
        names = list(hand[0].phases)
        phases = [[name, spread([result.phases[name] for result in hand])] for name in names]
        parts += ["## Phases by hand", table(["phase", "median (range)"], phases)]
    if site:
        middle = site[(len(site) - 1) // 2]
        parts += [_tasks("first", middle.log, middle.seconds)]
        middle = sorted(site, key=lambda result: result.second)[(len(site) - 1) // 2]
        parts += [_tasks("second", middle.log.removesuffix(".log") + "-second.log", middle.second)]
    return "\n\n".join(parts)


def _tasks(which: str, log: str, seconds: float) -> str:
    tasks = profile(Path(log).read_text(encoding="utf-8", errors="replace"))
    roles = by_role(tasks)
    rest = seconds - sum(value for _, value in roles)
    rows = [[name, f"{value:.1f}"] for name, value in [*roles, ("start and end of ansible-playbook", rest)]]
    return "\n\n".join(
        [
            f"## Where the time of the {which} run goes",
            f"The run of median length, {seconds:.1f} s. Sum of all tasks of each role:",
            table(["role", "seconds"], rows),
            f"The {TASKS} longest of its {len(tasks)} tasks:",
            table(["task", "seconds"], [[name, f"{value:.1f}"] for name, value in tasks[:TASKS]]),
        ]
    )


def insert(document: str, generated: str) -> str:
    """Return the document with a new generated part; the rest stays.

    :raises ValueError: the markers do not occur exactly once.
    """
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise ValueError(f"the document needs {BEGIN} and {END} once each")
    before, _, rest = document.partition(BEGIN)
    return f"{before}{BEGIN}\n{generated}\n{END}{rest.partition(END)[2]}"


def read(path: Path) -> str:
    """Return the document, or an empty frame if it is missing.

    :raises ValueError: it has no place for the generated part.
    """
    document = path.read_text(encoding="utf-8") if path.exists() else HEAD
    insert(document, "")
    return document


def load(path: Path) -> list[Result]:
    """Return results of an earlier measurement, from its results.json."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [Result(**{**entry, "peak": Peak(**entry["peak"])}) for entry in entries]


def write(path: Path, results: Sequence[Result]) -> None:
    path.write_text(insert(read(path), render(results)), encoding="utf-8")
