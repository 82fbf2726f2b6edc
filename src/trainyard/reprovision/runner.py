"""Run a playbook under ansible-runner, and keep only masked events and output.

By default ansible-runner 2.4.3 disables host key checking and replaces the path of callbacks. It also writes a cache of
facts and the whole environment to its artefacts. This module overrides each default. The folder of
ansible-runner is private and is removed after the run.

ansible-runner finds events by escape sequences in the output, which also contains texts of hosts. Therefore each event
carries a number that only this process and ansible-playbook know. Events without it are dropped.
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
"""Environment variable: the run that holds the lock and that the playbook belongs to."""

LONGEST = "8000000"
"""Limit of the characters of a result; a longer one arrives empty. The default of ansible-runner is 700000, and a
host's answer has at most 8 MiB (`plugins/callback/host_answers.py`)."""

SHOWN = 2**20
"""Limit of the characters of an event's output, the same as for one text in `plugins/callback/plain_output.py`."""

JOB = "JOB_ID"
"""Environment variable: a number that ansible-runner's callback adds to each of its events."""

PREFIX = "trainyard-run-"
"""Prefix of a run's folder among the temporary files."""

YOUNG_SECONDS = 5.0
"""Age up to which a folder may not have been locked yet."""

MEMORY_OF_EVENTS = 200_000
"""Limit of the events of one run; site.yml has about 150 for each host."""


@dataclass(frozen=True)
class Played:
    """The result of a playbook run.

    :param events: reduced and masked, in their order.
    :param rc: status of ansible-playbook; 254 if it was stopped.
    :param stopped: why it did not finish; empty if it did.
    :param kept: name of a file -> its compressed bytes: the events, one JSON document for each line, and the output.
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
    :param inventory: folders or files, as after `-i`.
    :param mode: `check` only reads, `run` changes hosts.
    :param site_hosts: limits the run to these hosts; empty for all.
    :param run_id: of the run that holds the lock.
    :param timeout: limit in seconds, after which the playbook is stopped.
    :param masker: masks events and output.
    :param root: the checkout whose playbook, roles and configuration are used.
    :param extra: additional variables.
    :param environment: additional environment variables: paths, never values of secrets.
    :param arguments: additional options of ansible-playbook, such as the path of a vault password file.
    :param raw: receives each unmodified event of ansible-runner (recordings for tests).
    :raises TrainyardError: ansible-runner cannot start it.
    """
    import ansible_runner

    reader, output, job = Reader(), io.StringIO(), secrets.randbits(63)
    events: list[Event] = []

    def handle(event: Mapping[str, Any]) -> bool:
        raw(event)
        if event.get("stdout"):
            output.write(masker.text(text(event["stdout"], SHOWN)) + "\n")
        # Without the number, a host could forge events of any host in its output.
        found = reader.read(event) if event.get("job_id") == job else None
        if found and len(events) < MEMORY_OF_EVENTS:
            events.append(masker.data(found))
        # False: ansible-runner writes no file, as only masked data may reach the disk.
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
        # The ansible-playbook of this Python, also if the caller's PATH has another one.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        **({RUN_ID: run_id} if run_id else {}),
    }


def _extra(folder: str, variables: Mapping[str, Any]) -> list[str]:
    """Return options that pass variables in a file, as every process of the machine may read arguments."""
    if not variables:
        return []
    path = Path(folder) / "variables.json"
    path.write_text(json.dumps(dict(variables)), encoding="utf-8")
    return ["--extra-vars", f"@{path}"]


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """Create a private folder that is removed after the run. Also remove the folders of killed runs."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if left.lstat().st_uid == os.geteuid() and _unused(left):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        # The kernel releases the lock when this process ends, also if it is killed.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(descriptor)


def _unused(folder: Path) -> bool:
    """Return whether the run of a folder has ended. A new folder may not be locked yet, so it counts as used."""
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
