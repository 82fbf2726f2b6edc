"""The running lab that drift is injected into, and the program that detects it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from drift_shapes import SHAPES, Shape, hosts_of, hostvars, shape
from drift_state import KUBECTL
from mishaps import until
from sides import Site
from stand import PLAY_LIMIT, SITE_LIMIT, Stand
from timed import BenchError

RUN_SECONDS = 1500.0
"""Time limit of one run: an emulated machine is slow."""


@dataclass(frozen=True)
class Ran:
    """One run of `trainyard reprovision run`."""

    status: int
    seconds: float
    report: Mapping[str, Any]

    @property
    def items(self) -> list[dict[str, Any]]:
        return list(self.report["items"])


def reprovision(stand: Stand, mode: str) -> Ran:
    """Run it once.

    :raises BenchError: it leaves no report.
    """
    before = _last(stand)
    program = [sys.executable, "-m", "trainyard", "-i", str(stand.inventory), "reprovision"]
    began = time.monotonic()
    done = subprocess.run(
        [*program, "run", "--mode", mode], cwd=stand.root, capture_output=True, text=True, check=False,
        timeout=RUN_SECONDS, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": stand.source},
    )  # fmt: skip
    seconds, report = time.monotonic() - began, _last(stand)
    (stand.folder / f"{report.get('id', 'none')}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if not report or report.get("id") == before.get("id"):
        raise BenchError(f"The {mode} left no report: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    (stand.folder / f"{report['id']}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    return Ran(done.returncode, seconds, report)


def _last(stand: Stand) -> dict[str, Any]:
    code, said = stand.answer("reprovision", "show", "--json")
    return dict(json.loads(said)) if code == 0 and said.startswith("{") else {}


class Lab(Stand):
    """A lab in which some hosts may be emulated machines, reachable only by SSH."""

    @cached_property
    def machines(self) -> dict[str, str]:
        """Return name -> address."""
        listed = hostvars(self.inventory)
        return {name: each["ansible_host"] for name, each in listed.items() if each.get("lab_kind") == "machine"}

    def bytes_of(self, node: str, *command: str, given: str = "") -> bytes:
        if node not in self.machines:
            return super().bytes_of(node, *command, given=given)
        keys = self.state / "ssh"
        options = ["-i", str(keys / "id_ed25519"), "-o", f"UserKnownHostsFile={keys / 'known_hosts'}"]
        argv = ["ssh", *options, "-o", "BatchMode=yes", f"root@{self.machines[node]}", shlex.join(command)]
        done = subprocess.run(argv, input=given.encode(), capture_output=True, check=False, timeout=PLAY_LIMIT)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-2000:]
            raise BenchError(f"{command[0]} on {node} ended with {done.returncode}: {said}")
        return done.stdout


@contextmanager
def standing(options: Namespace) -> Iterator[Stand]:
    """Provide the lab with separate settings: created and removed, or a copy of the inventory of a given lab.

    :raises BenchError: the lab cannot be created.
    """
    folder = Path(tempfile.mkdtemp(prefix="trainyard-drift-", dir="/var/tmp"))
    print(f"logs are in {folder}", flush=True)
    own = None if options.inventory else Site(folder)
    inventory = folder / "inventory"
    try:
        if own:
            own.prepare()
            own.down()
            wanted = SHAPES[options.shape]
        else:
            shutil.copytree(options.inventory, inventory)
            wanted = SHAPES["lab"] if options.builder else Shape()
        stand = Lab(inventory, options.lab, folder)
        for joined in (False, True) if wanted.joining else (True,):
            shape(inventory, wanted, joined=joined)
            stand.play("site.yml", limit=SITE_LIMIT)
        yield stand
    finally:
        if own:
            own.down()


def on(host: str, script: str) -> Callable[[Stand], None]:
    """Return an action that runs a script in a node's container; the script ends at its first error."""
    return lambda stand: stand.on_node(host, "sh", "-ec", script) and None


def kubectl(script: str) -> Callable[[Stand], None]:
    """Return an action that runs a script with `k` for kubectl."""
    return on("cp1", f'k() {{ {KUBECTL} "$@"; }}\n{script}')


def answering(stand: Stand) -> None:
    """Wait until the API server answers, and all nodes are Ready."""

    def ready() -> bool:
        try:
            said = stand.on_node("cp1", "sh", "-c", f"{KUBECTL} get nodes --no-headers --request-timeout=5s")
        except BenchError:
            return False
        ours = [line.split() for line in said.splitlines() if line.split()[0] in hosts_of(stand.inventory)]
        return bool(ours) and all(line[1].startswith("Ready") for line in ours)

    until("the nodes", ready, 240.0)
