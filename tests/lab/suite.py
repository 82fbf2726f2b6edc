"""Molecule's scenarios as data, their order, and their execution."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import yaml

from tests.cpu_seconds import wait

ROOT = Path(__file__).resolve().parents[2]
MOLECULE = ROOT / "molecule"

STARTED_IN = dict(os.environ)
"""Environment of pytest. Scenarios run beside tests that replace PATH for a moment."""

SCENARIO_LIMIT = 2700
"""Seconds after which a scenario counts as hung: 1.5 times the longest on a slow machine with other load."""

DESTROY_LIMIT = 300
"""Seconds for the removal of a failed scenario's nodes."""

TAIL = 80
"""Lines shown of a failed scenario's log."""

STEP = re.compile(r"\[(?P<scenario>\w+) > (?P<step>\w+)\] (?P<what>Executing|Executed)")


@dataclass(frozen=True)
class Scenario:
    """One folder of molecule/, placed according to its hosts.yml.

    :param suite: `test` (the default) or `proof`.
    :param chained: reuses the nodes of the chained scenarios before it.
    :param on_site: its remaining steps if it reuses the finished site of `cluster`, where check, first and second run
        are already proven.
    :param prepared: roles that ran on its nodes before it starts.
    """

    name: str
    suite: str
    chained: bool
    on_site: tuple[str, ...]
    prepared: tuple[str, ...]


def scenarios() -> list[Scenario]:
    """Return all scenarios, the chained ones in the order of their dependencies."""
    found = []
    for path in MOLECULE.glob("*/molecule.yml"):
        values = (yaml.safe_load((path.parent / "hosts.yml").read_text(encoding="utf-8"))["all"] or {}).get(
            "vars"
        ) or {}
        suite, chained = values.get("test_suite", "test"), values.get("chained", False)
        lists = [tuple(values.get(name, ())) for name in ("on_site", "prepared")]
        found.append(Scenario(path.parent.name, suite, chained, *lists))
    return sorted(found, key=lambda scenario: (scenario.chained, len(scenario.prepared), scenario.name))


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a run: the programs of this Python's environment, and no colours in the log."""
    path = f"{Path(sys.executable).parent}:{STARTED_IN['PATH']}"
    fixed = {"PATH": path, "NO_COLOR": "1", "ANSIBLE_NOCOLOR": "1", "PY_COLORS": "0", "PYTHONUNBUFFERED": "1"}
    # A string from a host or a file that looks like a template is a bug in a role.
    fixed["_ANSIBLE_TEMPLAR_UNTRUSTED_TEMPLATE_BEHAVIOR"] = "error"
    return {**STARTED_IN, **fixed, "MOLECULE_PROJECT_DIRECTORY": str(ROOT), **more}


def run(command: list[str], log: Path, limit: float, env: dict[str, str], show: bool = False) -> list[str]:
    """Run a program and keep its output, each line with the seconds since its start.

    :param limit: seconds after which it is killed with all its child processes.
    :param show: also print the lines of progress.
    :returns: one text for each step of molecule, with its seconds.
    :raises AssertionError: the program fails or exceeds the limit; the message has the end of the log.
    """
    begin = time.monotonic()
    steps: list[str] = []
    started = 0.0
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout
    watch = Timer(limit, lambda: os.killpg(process.pid, signal.SIGKILL))
    watch.start()
    with log.open("w", encoding="utf-8", buffering=1) as stream:
        for line in process.stdout:
            now = time.monotonic() - begin
            stream.write(f"{now:7.1f} {line}")
            if show and line.startswith(("PLAY", "TASK", "    ")):
                print(line, end="", flush=True)
            found = STEP.search(line)
            if found and found["what"] == "Executing":
                started = now
            elif found:
                steps.append(f"{found['step']} {now - started:.0f} s")
    watch.cancel()
    used = wait(process, log.stem)
    status = process.returncode
    if status != 0:
        end = log.read_text(encoding="utf-8").splitlines()[-TAIL:]
        why = f"ran longer than {limit:.0f} s" if status == -signal.SIGKILL else f"ended with status {status}"
        raise AssertionError("\n".join([f"{' '.join(command)} {why}; whole log: {log}", *end]))
    return [f"{time.monotonic() - begin:.0f} s with {used:.0f} CPU s", *steps]


def playbook(name: str, *arguments: str) -> list[str]:
    """Return the command for a shared playbook on the test lab."""
    inventories = ["--inventory", "inventories/lab", "--inventory", "molecule/_shared/inventory"]
    return ["ansible-playbook", *inventories, *arguments, f"molecule/_shared/{name}"]


def molecule(command: str, scenario: Scenario, *arguments: str, on_site: bool = False) -> list[str]:
    """Return the molecule command for one scenario, on its own nodes or on those of the site of `cluster`."""
    configs = ["-c", "molecule/_shared/config.yml", *(["-c", "molecule/_shared/on_site.yml"] if on_site else [])]
    # The parallel tests run one after another and use one core. They get it, and both cores have work to the end.
    return ["nice", "-n", "5", "molecule", *configs, command, *arguments, "-s", scenario.name]


def run_scenario(
    scenario: Scenario, logs: Path, limit: float = SCENARIO_LIMIT, *, mirror_is_up: bool = False, stays: bool = False
) -> list[str]:
    """Run a scenario with its whole sequence of steps; see `run`.

    Its nodes are removed, even after it was killed, because they would otherwise use the CPU time of others.

    :param stays: leave the nodes for the next scenario; those of a chained one stay even if it fails.
    """
    folder = logs / scenario.name
    folder.mkdir()
    env = environment(MOLECULE_EPHEMERAL_DIRECTORY=str(folder))
    if mirror_is_up:
        env["TRAINYARD_TEST_CREATE"] = "nodes"
    try:
        test = molecule("test", scenario, *(["--destroy=never"] if stays else []))
        return run(test, logs / f"{scenario.name}.log", limit, env)
    except AssertionError:
        if not (stays and scenario.chained):
            with suppress(AssertionError):
                remove_nodes(scenario, logs)
        raise


def run_on_site(scenario: Scenario, logs: Path) -> list[str]:
    """Run the remaining steps of a scenario on the site of `cluster`; see `run`."""
    folder = logs / scenario.name
    folder.mkdir()
    env = environment(MOLECULE_EPHEMERAL_DIRECTORY=str(folder))
    times = []
    for step in scenario.on_site:
        call = molecule(step.replace("_", "-"), scenario, on_site=True)
        times += run(call, logs / f"{scenario.name}_{step}.log", SCENARIO_LIMIT, env)[1:]
    return ["on the site", *times]


def remove_nodes(scenario: Scenario, logs: Path) -> list[str]:
    """Remove the nodes that a scenario has left; see `run`."""
    env = environment(MOLECULE_EPHEMERAL_DIRECTORY=str(logs / scenario.name))
    return run(molecule("destroy", scenario), logs / f"{scenario.name}_destroy.log", DESTROY_LIMIT, env)
