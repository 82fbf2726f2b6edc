"""Every molecule scenario, one after the other, on system containers of this machine.

The scenarios share one lab and its mirror, which are made before the first and removed after the last.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOLECULE = ROOT / "molecule"

SCENARIOS = {
    "bundle": 300,
    "lab": 300,
    "mirror": 420,
    "base": 300,
    "containerd": 300,
    "docker": 300,
    "kubernetes": 300,
    "control_planes": 600,
    # From here each goes on with the nodes of the one before.
    "control_plane": 420,
    "worker": 420,
    "network": 600,
    "workloads": 900,
    "verify": 420,
    "cluster": 1500,
}
"""Scenarios in their order, with a limit in seconds that is three times or more what they take on two cores."""

BUNDLE_LIMIT = 3000
"""Seconds for the bundle from nothing, and the mirror."""

TAIL = 80
"""Lines of a failed scenario's log that are shown."""

STEP = re.compile(r"\[(?P<scenario>\w+) > (?P<step>\w+)\] (?P<what>Executing|Executed)")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root"),
]


def _environment(**more: str) -> dict[str, str]:
    """The environment of a run: the programs of this Python's environment, and no colours in the log."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    fixed = {"PATH": path, "NO_COLOR": "1", "ANSIBLE_NOCOLOR": "1", "PY_COLORS": "0", "PYTHONUNBUFFERED": "1"}
    # A string that came from a host or a file and looks like a template is a bug in a role.
    fixed["_ANSIBLE_TEMPLAR_UNTRUSTED_TEMPLATE_BEHAVIOR"] = "error"
    return {**os.environ, **fixed, "MOLECULE_PROJECT_DIRECTORY": str(ROOT), **more}


def _run(command: list[str], log: Path, limit: float, environment: dict[str, str], show: bool = False) -> list[str]:
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
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout
    watch = Timer(limit, lambda: os.killpg(process.pid, signal.SIGKILL))
    watch.start()
    with log.open("w", encoding="utf-8") as stream:
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
    return steps


def _playbook(name: str, *arguments: str) -> list[str]:
    """The call of a shared playbook on the test lab."""
    inventories = ["--inventory", "inventories/lab", "--inventory", "molecule/_shared/inventory"]
    return ["ansible-playbook", *inventories, *arguments, f"molecule/_shared/{name}"]


@contextmanager
def _terminal(request: pytest.FixtureRequest) -> Iterator[None]:
    """Lets what is printed inside reach the terminal at once."""
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        yield


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("molecule")


@pytest.fixture(scope="session")
def mirror(request: pytest.FixtureRequest, logs: Path) -> Iterator[None]:
    """The whole bundle, and the test lab's mirror filled from it; afterwards no test lab is left."""
    environment = _environment()
    down = ["-e", "lab_name=trainyard-test"], ["-e", "lab_name=trainyard-test2", "-e", "lab_subnet=10.86.0.0/24"]
    with _terminal(request):
        print(f"\nBundle and mirror for the scenarios; logs in {logs}")
        for index, arguments in enumerate(down):
            _run(_playbook("lab_down.yml", *arguments), logs / f"down_{index}.log", 120, environment)
        everything = ["-e", "test_lab_training=true"]
        _run(_playbook("mirror.yml", *everything), logs / "mirror.log", BUNDLE_LIMIT, environment, show=True)
    yield
    for index, arguments in enumerate(down):
        _run(_playbook("lab_down.yml", *arguments), logs / f"down_{index}.log", 120, environment)


def test_every_scenario_is_run() -> None:
    assert {path.parent.name for path in MOLECULE.glob("*/molecule.yml")} == SCENARIOS.keys()


def test_every_role_has_a_scenario() -> None:
    roles = {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()}
    assert roles <= SCENARIOS.keys()


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, logs: Path, request: pytest.FixtureRequest) -> None:
    folder = logs / name
    folder.mkdir()
    environment = _environment(MOLECULE_EPHEMERAL_DIRECTORY=str(folder), TRAINYARD_TEST_CHAIN="1")
    if name == "cluster":
        # Two cores carry one cluster well.
        _run(_playbook("lab_down.yml"), logs / "down.log", 120, environment)
    command = ["molecule", "-c", "molecule/_shared/config.yml", "test", "-s", name]
    steps = _run(command, logs / f"{name}.log", SCENARIOS[name], environment)
    with _terminal(request):
        print(f"\n{name}: {', '.join(steps)}", flush=True)
