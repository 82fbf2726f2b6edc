"""A cluster of processes on the loopback interface, for tests.

Free ports for clusters on the loopback interface, in tests.

Small data sets in the format of MNIST, for tests.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Below the ephemeral ports of Linux (ip_local_port_range: from 32768) and the node ports of Kubernetes (from 30000).
# Otherwise a connection of any program could take a port that the kernel chose between test and use.
PORTS = range(15_000, 30_000)


def addresses(count: int) -> list[str]:
    """Return loopback addresses whose ports, and the ports after them, were free a moment ago."""
    found: list[str] = []
    with ExitStack() as held:
        for number in random.sample(PORTS[::2], len(PORTS[::2])):
            if len(found) == count:
                break
            try:
                for each in (number, number + 1):
                    held.enter_context(socket.create_server(("", each)))
            except OSError:
                continue
            found.append(f"127.0.0.1:{number}")
    return found


def write(folder: Path, train: int = 64, test: int = 16) -> Path:
    """Write four idx files whose classes are easy to distinguish (pixel rows 0 to 9), and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        labels = bytes(number % 10 for number in range(count))
        images = b"".join(bytes(28 * label) + b"\xff" * 28 + bytes(28 * (27 - label)) for label in labels)
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(header + images)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
    return folder


if TYPE_CHECKING:
    from tests.trainings.preloaded import Preloaded

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "workloads"
START_SECONDS = 120
"""Time to import TensorFlow in four processes on a busy machine."""


def _started(module: str, arguments: list[str], environment: dict[str, str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("a") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **environment},
            stdout=stream,
            stderr=subprocess.STDOUT,
        )


def _forked(module: str, arguments: list[str], environment: dict[str, str], output: Path) -> Preloaded:
    # Imported here, because the import starts a server process that other programs do not need.
    from tests.trainings.preloaded import Preloaded

    return Preloaded(module, arguments, environment, output)


class Processes:
    """One chief, ps and workers with free ports, and an evaluator if it is started.

    :param folder: folder for data, logs and the output of the processes.
    :param preloaded: whether to fork them from a process that has imported TensorFlow; else each starts as in its pod.
    :param workload: folder of `training`.
    :param data: folder of the data set; None to create a small one.
    """

    def __init__(
        self,
        folder: Path,
        workload: str = "mnist_ps",
        ps: int = 1,
        workers: int = 2,
        data: Path | None = None,
        *,
        preloaded: bool = False,
    ) -> None:
        self.folder, self.logs = folder, folder / "logs"
        self.data = data or write(folder / "data", train=640, test=100)
        self._module = f"training.{workload}.main"
        chief, *servers = addresses(1 + ps + workers)
        self.cluster = {"chief": [chief], "ps": servers[:ps], "worker": servers[ps:]}
        self._start = _forked if preloaded else _started
        self.running: dict[str, Preloaded | subprocess.Popen[bytes]] = {}
        self._chief_flags: tuple[str, ...] = ()
        self._steps_before = 0
        self._crashed = False

    def start(self, role: str, index: int = 0, *flags: str) -> Preloaded | subprocess.Popen[bytes]:
        if role == "chief":
            self._chief_flags, self._steps_before = flags, len(self.events("step"))
        config = {"cluster": self.cluster, "task": {"type": role, "index": index}}
        arguments = ["--data_dir", str(self.data), "--log_dir", str(self.logs), *flags]
        told = {"TF_CONFIG": json.dumps(config), "PYTHONPATH": str(WORKLOADS)}
        process = self._start(self._module, arguments, told, self.folder / f"{role}{index}.log")
        self.running[f"{role}{index}"] = process
        return process

    def start_all(self, *flags: str) -> Preloaded | subprocess.Popen[bytes]:
        """Start every process, and return the chief's."""
        for role in ("ps", "worker"):
            for index in range(len(self.cluster[role])):
                self.start(role, index)
        return self.start("chief", 0, *flags)

    def codes(self, seconds: float) -> dict[str, int]:
        """Return the exit codes of all processes, which must end within the time."""
        deadline = time.monotonic() + seconds
        return {name: each.wait(max(0.1, deadline - time.monotonic())) for name, each in self.running.items()}

    def saved(self) -> int:
        """Return the step of the last checkpoint."""
        return int(self.events("checkpoint")[-1]["step"])

    def events(self, name: str, file: str = "metrics.jsonl") -> list[dict[str, Any]]:
        path = self.logs / "attempts/first" / file
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def _log(self) -> str:
        return (self.folder / "chief0.log").read_text()[-4000:]

    def wait(self, true: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, self._log()
            time.sleep(0.1)

    def wait_step(self, step: int) -> Preloaded | subprocess.Popen[bytes]:
        """Wait until a step is reported, and return the chief.

        TensorFlow 2.21 ended a chief by SIGSEGV in 1 of 352 starts, after it connected and before its first step. A Job
        starts such a chief again. This does the same, once and with a warning, because the test is about later steps.
        """

        def reached() -> bool:
            status = self.running["chief0"].poll()
            steps = self.events("step")
            if status == -signal.SIGSEGV and not self._crashed and len(steps) == self._steps_before:
                self._crashed = True
                warnings.warn(f"The chief ended by SIGSEGV:\n{self._log()}", stacklevel=2)
                self.start("chief", 0, *self._chief_flags)
                status = None
            found = any(event["step"] >= step for event in steps)
            assert found or status is None, f"The chief ended with {status}:\n{self._log()}"
            return found

        self.wait(reached)
        return self.running["chief0"]

    def kill(self, *names: str) -> None:
        """End processes (all if none is named) abruptly, as a power cut does."""
        for name in names or self.running:
            self.running[name].kill()
            self.running[name].wait()
