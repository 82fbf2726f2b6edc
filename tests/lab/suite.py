"""Molecule's scenarios as data: which there are, what each goes on from, and how one is run."""

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

ROOT = Path(__file__).resolve().parents[2]
MOLECULE = ROOT / "molecule"

SCENARIO_LIMIT = 2700
"""Seconds after which a scenario counts as hung: half as much again as the longest on a slow machine, not alone."""

DESTROY_LIMIT = 300
"""Seconds for the removal of a failed scenario's nodes."""

TAIL = 80
"""Lines of a failed scenario's log that are shown."""

STEP = re.compile(r"\[(?P<scenario>\w+) > (?P<step>\w+)\] (?P<what>Executing|Executed)")


@dataclass(frozen=True)
class Scenario:
    """One folder of molecule/, placed by what its hosts.yml says.

    :param suite: `test` (the default) or `proof`.
    :param chained: goes on with the nodes of the chained scenarios before it.
    :param on_site: the steps that are left of it when it goes on with the finished site of `cluster` instead, where
        check, first and second run have been proven.
    :param prepared: roles that have run on its nodes before it begins.
    """

    name: str
    suite: str
    chained: bool
    on_site: tuple[str, ...]
    prepared: tuple[str, ...]


def scenarios() -> list[Scenario]:
    """All scenarios, the chained ones in the order in which each stands on the one before."""
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
    """The environment of a run: the programs of this Python's environment, and no colours in the log."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    fixed = {"PATH": path, "NO_COLOR": "1", "ANSIBLE_NOCOLOR": "1", "PY_COLORS": "0", "PYTHONUNBUFFERED": "1"}
    # A string that came from a host or a file and looks like a template is a bug in a role.
    fixed["_ANSIBLE_TEMPLAR_UNTRUSTED_TEMPLATE_BEHAVIOR"] = "error"
    return {**os.environ, **fixed, "MOLECULE_PROJECT_DIRECTORY": str(ROOT), **more}


def run(command: list[str], log: Path, limit: float, env: dict[str, str], show: bool = False) -> list[str]:
    """Run a program and keep its output, each line with the seconds since its start.

    :param limit: seconds after which it is killed with everything that it started.
    :param show: print the lines of progress, too.
    :returns: one text for each step of molecule, with its seconds.
    :raises AssertionError: with the end of the log, when the program fails or runs out of time.
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
    status = process.wait()
    if status != 0:
        end = log.read_text(encoding="utf-8").splitlines()[-TAIL:]
        why = f"ran longer than {limit:.0f} s" if status == -signal.SIGKILL else f"ended with status {status}"
        raise AssertionError("\n".join([f"{' '.join(command)} {why}; whole log: {log}", *end]))
    return [f"{time.monotonic() - begin:.0f} s", *steps]


def playbook(name: str, *arguments: str) -> list[str]:
    """The call of a shared playbook on the test lab."""
    inventories = ["--inventory", "inventories/lab", "--inventory", "molecule/_shared/inventory"]
    return ["ansible-playbook", *inventories, *arguments, f"molecule/_shared/{name}"]


def molecule(command: str, scenario: Scenario, *arguments: str, on_site: bool = False) -> list[str]:
    """The call of molecule for one scenario, on its own nodes or on those of the site of `cluster`."""
    configs = ["-c", "molecule/_shared/config.yml", *(["-c", "molecule/_shared/on_site.yml"] if on_site else [])]
    # The tests beside come one after another and use one core: they have it, and both cores have work to the end.
    return ["nice", "-n", "5", "molecule", *configs, command, *arguments, "-s", scenario.name]


def run_scenario(
    scenario: Scenario, logs: Path, limit: float = SCENARIO_LIMIT, *, mirror_is_up: bool = False, stays: bool = False
) -> list[str]:
    """Run a scenario with its whole sequence of steps; see `run`.

    Its nodes are removed, also after it was killed: they would go on taking the others' processor.

    :param stays: leave the nodes, for the next; those of a chained one stay even if it fails.
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
    """Run those steps of a scenario that are left on the site of `cluster`; see `run`."""
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
