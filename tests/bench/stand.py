"""A running lab for programs that call the project's verbs as a user does: a new one, or a given one."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import inputs
from sides import LAB, Site
from timed import BenchError, timed

from trainyard.kube.api import Api
from trainyard.kube.connection import connect
from trainyard.project import python_path
from trainyard.trainings import record
from trainyard.trainings.names import NAME_LABEL, ROLE_LABEL

NAMESPACE = "trainings"
CATALOGUE = inputs.ROOT / "molecule" / "trainings" / "catalogue"
"""Entries in addition to the project's own."""
SITE_LIMIT = 1800.0
PLAY_LIMIT = 900.0
TAIL = 25
"""Lines of a failed call that its error quotes."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--inventory", type=Path, help="inventory of a running lab (default: create and remove a lab)")
    parser.add_argument("--lab", default=LAB, help="lab_name of that inventory (default: %(default)s)")


class Stand:
    """A site that has passed.

    :param inventory: the lab's inventory.
    :param lab: name of the lab, the prefix of its containers' names.
    :param folder: folder for logs, one file a call.
    :param root: the checkout whose playbooks and programs are called.
    :param variables: passed with `-e` to every playbook.
    """

    def __init__(
        self,
        inventory: Path,
        lab: str,
        folder: Path,
        variables: Mapping[str, Any] = MappingProxyType({}),
        root: Path = inputs.ROOT,
    ) -> None:
        self.inventory, self.lab, self.folder, self.root = inventory, lab, folder, root
        self.variables = ["-e", json.dumps(dict(variables))] if variables else []
        self.state = Path("/var/lib/trainyard") / lab
        self._numbers = itertools.count(1)

    @property
    def source(self) -> str:
        """PYTHONPATH of this checkout, whose environment need not be the one that runs the tests."""
        return python_path(self.root)

    @cached_property
    def api(self) -> Api:
        return connect(str(self.state / "kubeconfig"))

    def play(self, playbook: str, *arguments: str, limit: float = PLAY_LIMIT) -> tuple[float, str]:
        """Return seconds and output of a playbook.

        :raises BenchError: it fails; the message has the end of its output.
        """
        command = ["ansible-playbook", playbook, "-i", str(self.inventory), *self.variables, *arguments]
        return self._call(command, playbook, limit)

    def train(self, entry: Mapping[str, Any] | None = None, **words: str) -> tuple[float, str]:
        """Return seconds and output of train.yml; see `call`."""
        return self.play("playbooks/train.yml", *call(entry, **words))

    def forget(self, run: str) -> None:
        """Stop a run and delete its record and its files, if it exists."""
        if record.find(self.api, NAMESPACE, run):
            named = ("-e", f"run={run}", "-e", f"confirm={run}", "-e", "delete=true")
            self.play("playbooks/train_stop.yml", *named)

    def program(self, *arguments: str) -> tuple[float, str]:
        """Return seconds and output of the program `trainyard`."""
        return self._call([sys.executable, "-m", "trainyard", "-i", str(self.inventory), *arguments], arguments[0], 120)

    def answer(self, *arguments: str) -> tuple[int, str]:
        """Return exit status and standard output of the program `trainyard`, even if it fails."""
        command = [sys.executable, "-m", "trainyard", "-i", str(self.inventory), *arguments]
        done = subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": self.source},
        )  # fmt: skip
        return done.returncode, done.stdout

    def record(self, run: str) -> dict[str, Any]:
        """Return the record of a run in the cluster."""
        return record.read(record.find(self.api, NAMESPACE, run))

    def pods(self, run: str, role: str = "") -> list[dict[str, Any]]:
        labels = f"{NAME_LABEL}={run}" + (f",{ROLE_LABEL}={role}" if role else "")
        return self.api.list("v1", "Pod", NAMESPACE, labels=labels)

    def on_node(self, node: str, *command: str, given: str = "") -> str:
        """Return the output of a command in a node's container.

        :raises BenchError: it fails.
        """
        return self.bytes_of(node, *command, given=given).decode()

    def bytes_of(self, node: str, *command: str, given: str = "") -> bytes:
        """Return the output as bytes, which may be binary."""
        argv = ["podman", "exec", "-i", f"{self.lab}-{node}", *command]
        done = subprocess.run(argv, input=given.encode(), capture_output=True, check=False, timeout=PLAY_LIMIT)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-2000:]
            raise BenchError(f"{command[0]} on {node} ended with {done.returncode}: {said}")
        return done.stdout

    def _call(self, argv: list[str], name: str, limit: float) -> tuple[float, str]:
        log = self.folder / f"{next(self._numbers):03d}-{Path(name).stem}.log"
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {"PATH": programs, "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        env |= {"COLUMNS": "200", "PYTHONPATH": self.source}
        try:
            seconds = timed(argv, log, limit, env=env, cwd=self.root)
        except BenchError as error:
            end = log.read_text(encoding="utf-8").splitlines()[-TAIL:]
            raise BenchError("\n".join([str(error), *end])) from error
        return seconds, log.read_text(encoding="utf-8")


def call(entry: Mapping[str, Any] | None = None, **words: str) -> list[str]:
    """Return the arguments of a call of train.yml.

    :param entry: the run as the inventory would describe it.
    :param words: short names.
    """
    variables = {"workloads_trainings": [entry], "workloads_catalogues": [str(CATALOGUE)]}
    listed = ["-e", json.dumps(variables)] if entry else []
    run = {"run": str(entry["run"])} if entry else {}
    return [*listed, *(word for name, value in {**run, **words}.items() for word in ("-e", f"{name}={value}"))]


@contextmanager
def standing(options: argparse.Namespace, variables: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Stand]:
    """Provide the lab, after site.yml has passed on it; a created one is removed afterwards.

    :param options: those of `add_options`.
    :param variables: passed with `-e` to every playbook.
    :raises BenchError: the lab cannot be created.
    """
    folder = Path(tempfile.mkdtemp(prefix="trainyard-proof-", dir="/var/tmp"))
    print(f"logs are in {folder}", flush=True)
    own = None if options.inventory else Site(folder)
    try:
        if own:
            own.prepare()
            own.down()
        stand = Stand(own.inventory if own else options.inventory, options.lab, folder, variables)
        stand.play("site.yml", limit=SITE_LIMIT)
        yield stand
    finally:
        if own:
            own.down()
