"""One run of a playbook under ansible-runner, of which nothing but masked events and output is left.

ansible-runner 2.4.3 turns host key checking off where the environment is silent, replaces the path of callbacks, keeps
a cache of facts among its artefacts, and writes the whole environment beside them: each is said otherwise here, and its
folder is a private one that goes with the run.

It finds events by escape sequences in the output, which also shows texts of hosts. So each event carries a number that
only this process and ansible-playbook know, and one without it is dropped.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import io
import json
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.untrusted import text
from ..project import ROOT
from . import stopping
from .events import Event, Reader
from .masking import Masker

CHECK = "check"
RUN = "run"
MODES = {CHECK: ("--check", "--diff"), RUN: ("--diff",)}

RUN_ID = "TRAINYARD_RUN_ID"
"""Tells a playbook that it belongs to the run that holds the lock."""

LONGEST = "8000000"
"""Characters of a result beyond which it comes empty; ansible-runner's own bound is 700000, and a host's answer has at
most 8 MiB (`plugins/callback/host_answers.py`)."""

SHOWN = 2**20
"""Characters of an event's output that are kept, as `plugins/callback/plain_output.py` has it for one text."""

JOB = "JOB_ID"
"""Variable of the environment: a number that ansible-runner's callback puts into each of its events."""

PREFIX = "trainyard-run-"
"""Of a run's folder, where temporary files are."""

YOUNG_SECONDS = 5.0
"""In which a folder may have been made and not been locked yet."""

MEMORY_OF_EVENTS = 200_000
"""Events of one run; site.yml has some 150 for each host."""


@dataclass(frozen=True)
class Played:
    """What is left of a run.

    :param events: reduced and masked, in their order.
    :param rc: status of ansible-playbook; 254 for one that was stopped.
    :param stopped: why it did not come to its end; empty where it did.
    :param kept: bytes of the events, one JSON document in a line, and of the output, both compressed.
    """

    events: list[Event]
    rc: int
    stopped: str
    kept: dict[str, bytes] = field(default_factory=dict, repr=False)


def play(
    playbook: str | Path,
    *,
    inventory: Sequence[str],
    mode: str,
    site_hosts: Sequence[str] = (),
    run_id: str = "",
    timeout: float,
    masker: Masker,
    root: Path = ROOT,
    extra: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    raw: Callable[[Mapping[str, Any]], object] = bool,
) -> Played:
    """Run a playbook to its end.

    :param playbook: path, or name below `root`.
    :param inventory: folders or files, as those after `-i`.
    :param mode: `check` looks, `run` changes.
    :param site_hosts: the hosts that are not left alone; all where it is empty.
    :param run_id: of the run that holds the lock.
    :param timeout: limit in seconds; the playbook is told to stop then.
    :param root: the checkout whose playbook, roles and configuration are used.
    :param extra: more variables.
    :param environment: more of the environment: paths, never values of secrets.
    :param arguments: more options of ansible-playbook, such as the path of a vault password file.
    :param raw: is handed each event as ansible-runner gives it (recordings for tests).
    :raises TrainyardError: ansible-runner cannot start it.
    """
    import ansible_runner

    reader, output, job = Reader(), io.StringIO(), secrets.randbits(63)
    events: list[Event] = []

    def handle(event: Mapping[str, Any]) -> bool:
        raw(event)
        if event.get("stdout"):
            output.write(masker.text(text(event["stdout"], SHOWN)) + "\n")
        # Without it, what a host has put into the output would count as an event of any host.
        found = reader.read(event) if event.get("job_id") == job else None
        if found and len(events) < MEMORY_OF_EVENTS:
            events.append(masker.data(found))
        # No file for it: nothing that is not masked is written to disk.
        return False

    variables = {**(extra or {}), **({"site_hosts": ",".join(site_hosts)} if site_hosts else {})}
    with _folder() as folder:
        try:
            runner = ansible_runner.run(
                private_data_dir=folder,
                project_dir=str(root),
                host_cwd=str(root),
                playbook=str(root / playbook),
                inventory=[str(Path(each).absolute()) for each in inventory],
                cmdline=shlex.join([*MODES[mode], *_extra(folder, variables), *arguments]),
                envvars={**_environment(root, run_id), **(environment or {}), JOB: str(job)},
                settings={"suppress_output_file": True, "pexpect_timeout": 1},
                timeout=int(timeout),
                event_handler=handle,
                cancel_callback=stopping.told,
                fact_cache_type="memory",
                rotate_artifacts=0,
                suppress_env_files=True,
                quiet=True,
            )
        except ansible_runner.exceptions.AnsibleRunnerException as error:
            raise TrainyardError(f"{playbook} cannot be run: {masker.text(str(error))}.") from error
    stopped = {
        "timeout": f"it was stopped after {timeout:.0f} s, the limit of reprovision_timeout",
        "canceled": stopping.WORDS,
    }.get(str(runner.status), "")
    if not stopped and not events:
        said = output.getvalue().strip().splitlines()
        stopped = f"ansible-playbook ended with {runner.rc} and did nothing: {said[-1] if said else 'no output'}"
    return Played(events, int(runner.rc), stopped, {
        "events.jsonl.gz": gzip.compress("".join(json.dumps(each) + "\n" for each in events).encode()),
        "output.txt.gz": gzip.compress(output.getvalue().encode()),
    })  # fmt: skip


def _environment(root: Path, run_id: str) -> dict[str, str]:
    return {
        "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_CALLBACK_PLUGINS": str(root / "plugins" / "callback"),
        "ANSIBLE_NOCOLOR": "True",
        "ANSIBLE_FORCE_COLOR": "False",
        "MAX_EVENT_RES": LONGEST,
        # The ansible-playbook of this Python, whoever called it.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        **({RUN_ID: run_id} if run_id else {}),
    }


def _extra(folder: str, variables: Mapping[str, Any]) -> list[str]:
    """Options that hand variables on by a file: every process of the machine may read arguments."""
    if not variables:
        return []
    path = Path(folder) / "variables.json"
    path.write_text(json.dumps(dict(variables)), encoding="utf-8")
    return ["--extra-vars", f"@{path}"]


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """A folder that its owner alone may read, and that goes with the run; those of killed runs go as well."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if left.lstat().st_uid == os.geteuid() and _unused(left):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        # The kernel gives it back when this process ends, however that happens.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(descriptor)


def _unused(folder: Path) -> bool:
    """Whether the run that has made a folder is over; one that has just been made may not be locked yet."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return time.time() - os.fstat(descriptor).st_mtime > YOUNG_SECONDS
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
