"""Run a playbook under ansible-runner, and keep only masked events and output.

Parts: `Reader`, which reduces events to the data of a report; `play`, which runs a playbook.

`Reader` relies on facts about ansible-runner 2.4.3. The diff of a result has its own event, before that of the result.
A result without `no_log` also contains the diff. A result with `no_log` has only a notice. So only the line that
Ansible displays shows whether it changed anything.

The root user of a host controls its results. Ansible removes the fields that begin with `_ansible_` and adds its own.
So `_ansible_delegated_vars` is trusted. Displayed text is not.

By default ansible-runner 2.4.3 disables host key checking and replaces the path of callbacks. It also writes a cache of
facts and the whole environment to its artefacts. `play` overrides each default. The folder of ansible-runner is
private, and `play` removes it after the run.

ansible-runner finds events by escape sequences in the output, which also contains texts of hosts. Therefore each event
carries a number that only this process and ansible-playbook know. `play` drops events without it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
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

from ..core.command import STARTER
from ..core.errors import TrainyardError
from ..core.flock import take
from ..core.untrusted import items, mapping, plain, text
from ..project import ROOT
from . import stopping
from .masking import Masker

Event = dict[str, Any]
"""`event`, and for the result of a task `host`, `role`, `play`, `task`, `module`, `changed`, `result`. `delegated` is
the host that executed it for `host`. `hidden` means `no_log`, and `looped` one iteration of a loop."""

RESULTS = ("runner_on_ok", "runner_item_on_ok", "runner_on_failed", "runner_item_on_failed", "runner_on_unreachable")
KEPT = ("msg", "remedy", "steps", "diff", "planned", "unread", "verdict", "problems", "cmd", "rc", "warnings", "kind")
ARGUMENTS = ("name", "path", "dest", "unit", "kind", "namespace")
"""Arguments of a module that name its object."""

LINE = r"^(?P<state>\w+): \[{host}(?: -> (?P<delegated>[^\s\](]+)[^\]]*)?\]"
"""The line that Ansible displays for a result. Warnings of the host precede it, and the lines below are indented."""

MESSAGE = 100_000
"""Limit of the characters of a text; the longest of the project is the output of a failed program."""
MOST_STEPS, MOST_WORDS = 10_000, 1_000
DEEPEST = -40
"""Start value for `plain`, which counts up to 6: objects of Kubernetes have about 20 levels."""
HOST_BYTES = 32 * 2**20
"""Limit of the characters of one host's results; a full installation of a host has less than 2 million."""


class Reader:
    """Reduces the events of one run, in their order."""

    def __init__(self) -> None:
        self._diffs: dict[tuple[str, str], Any] = {}
        self._looped: set[tuple[str, str]] = set()
        self._kept: dict[str, int] = {}

    def read(self, raw: Mapping[str, Any]) -> Event | None:
        """Return the reduced event; None if it is irrelevant for a report.

        :param raw: the event that ansible-runner passes to an event handler.
        """
        kind, data = raw.get("event"), raw.get("event_data") or {}
        place = (str(data.get("host", "")), str(data.get("task_uuid", "")))
        if kind == "runner_on_file_diff":
            self._diffs[place] = data.get("diff")
            return None
        if kind == "playbook_on_stats":
            names = ("processed", "ok", "changed", "dark", "failures", "rescued")
            return {"event": kind, **{name: dict(data.get(name) or {}) for name in names}}
        if kind == "playbook_on_play_start":
            return {"event": kind, "play": data.get("name", "")}
        if kind not in RESULTS:
            return None
        found = self._result(str(kind), raw, data, place)
        if kind.startswith("runner_item_"):
            self._looped.add(place)
        elif place in self._looped and kind == "runner_on_ok":
            # Each iteration has had its own event.
            found = {**found, "changed": False, "result": {}}
        return found

    def _result(self, kind: str, raw: Mapping[str, Any], data: Mapping[str, Any], place: tuple[str, str]) -> Event:
        result = mapping(data.get("res"))
        hidden = "censored" in result
        state, delegated = _shown(str(raw.get("stdout", "")), place[0])
        # A result that is too long arrives empty. Then the displayed line counts, as for a hidden result.
        changed = bool(result["changed"]) if "changed" in result else state == "changed"
        if result and not hidden and "_ansible_delegated_vars" not in result:
            delegated = ""
        event: Event = {
            "event": kind,
            "created": raw.get("created", ""),
            "host": place[0],
            "role": str(data.get("role", "")),
            "play": str(data.get("play", "")),
            "task": str(data.get("task", "")),
            "module": str(data.get("resolved_action") or data.get("task_action") or "").rpartition(".")[2],
            "changed": changed,
            "looped": kind.startswith("runner_item_"),
            "delegated": delegated,
            "hidden": hidden,
            "ignored": bool(data.get("ignore_errors")),
            "result": {},
        }
        diff = self._diffs.pop(place, None)
        if kind == "runner_on_ok" and not changed and "verdict" not in result:
            return event
        if not hidden:
            event["result"] = self._bounded(place[0], _kept(result, diff))
        return event

    def _bounded(self, host: str, kept: dict[str, Any]) -> dict[str, Any]:
        """Return the result, without its diff if the results of its host exceed the limit."""
        size = self._kept.get(host, 0) + len(json.dumps(kept, default=str))
        if size > HOST_BYTES:
            return {name: value for name, value in kept.items() if name not in ("diff", "steps", "warnings")}
        self._kept[host] = size
        return kept


def _shown(said: str, host: str) -> tuple[str, str]:
    """Return the state and the delegated host from the last line of a result; empty texts without such a line."""
    found = list(re.finditer(LINE.format(host=re.escape(host)), said, re.MULTILINE))[-1:]
    return (found[0]["state"], found[0]["delegated"] or "") if found else ("", "")


def _kept(result: Mapping[str, Any], diff: Any) -> dict[str, Any]:
    kept = {name: _checked(name, result[name]) for name in KEPT if name in result}
    kept.setdefault("diff", plain(diff, DEEPEST))
    arguments = mapping(mapping(result.get("invocation")).get("module_args"))
    found = {name: arguments[name] for name in ARGUMENTS if isinstance(arguments.get(name), str)}
    kept["arguments"] = {name: text(value) for name, value in found.items()}
    if "_ansible_item_label" in result:
        kept["label"] = text(str(result["_ansible_item_label"]))
    failures = [each for each in items(result.get("results")) if isinstance(each, dict) and each.get("failed")]
    if failures:
        # The result of a loop has no reasons; its iterations have.
        kept["msg"] = "; ".join(dict.fromkeys(text(str(each.get("msg", ""))) for each in failures[:MOST_WORDS]))
    return kept


def _checked(name: str, value: Any) -> Any:
    """Return a field of a result in the type that its readers expect."""
    if name in ("steps", "problems", "warnings"):
        return [text(str(each), MESSAGE) for each in items(value)[:MOST_STEPS]]
    if name == "cmd" and isinstance(value, (list, tuple)):
        return [text(str(each)) for each in value[:MOST_WORDS]]
    if name in ("msg", "remedy", "cmd", "verdict", "kind", "unread"):
        return text(str(value), MESSAGE)
    return plain(value, DEEPEST)


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
                cancel_callback=stopping.requested,
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
        # If this process is killed, its locks are released, so ansible-playbook must end as well.
        STARTER: str(os.getpid()),
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
            # A cleaning run may test this folder at the same moment.
            take(descriptor, wait=True)
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
        return take(descriptor) and time.time() - os.fstat(descriptor).st_mtime > YOUNG_SECONDS
    finally:
        os.close(descriptor)
