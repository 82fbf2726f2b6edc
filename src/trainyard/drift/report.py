"""The report of one run, schema 2: its revision, its items with their outcomes, and its exit status.

Parts: the report with its exit statuses; the revision. The schedule chooses the revision. Without a schedule, it is the
HEAD of the checkout.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..core.command import run
from ..core.errors import CommandError
from .find import CONNECTION, Found
from .items import CONTROL_PLANE, FOREIGN, PERSON, REPAIRED, Item

SCHEMA = 2

RUNNING = "running"
COMPLETE = "complete"
INTERRUPTED = "interrupted"

EXIT_CLEAN = 0
"""Nothing differs, or all drift was repaired and the verdict is pass."""
EXIT_DRIFT = 1
"""Drift is left, or an operator is needed."""
EXIT_UNKNOWN = 2
"""Hosts, revision or API are unavailable."""
EXIT_HELD = 3
"""Held back by a limit, a window or a missing approval."""
EXIT_BUSY = 4
"""Another run holds the lock."""
EXIT_FAILED = 5
"""A repair failed, or the verdict after it is fail."""

FOR_A_PERSON = (PERSON, CONTROL_PLANE, FOREIGN)

NO_VERDICT = "the verdict is unknown"

CLEAN, DRIFT, UNREACHABLE, FAILED, UNKNOWN = "clean", "drift", "unreachable", "failed", "unknown"
"""States of a host: nothing differs; something differs; not reached; refused by a role; not checked."""


def begun(
    mode: str, asked: str, now: float, revision: Mapping[str, Any] | None = None, only: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the report of a run that begins.

    :param mode: the mode of the run, `report` or `converge`; `asked` is the requested mode.
    :param now: seconds since the epoch.
    :param only: the requested hosts; empty for the whole site.
    """
    return {
        "schema": SCHEMA,
        "id": "",
        "mode": mode,
        "asked": asked,
        "only": list(only),
        "began": now,
        "ended": None,
        "seconds": None,
        "state": RUNNING,
        "exit_status": None,
        "headline": "",
        "revision": dict(revision or {"commit": "", "ref": "", "signed": None, "note": "the working tree as it is"}),
        "hosts": {},
        "items": [],
        "consequences": [],
        "limits": [],
        "repaired": None,
        "verdict": None,
        "lock": None,
        "notes": [],
    }


def of_the_site(reports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the reports of the whole site. A report of some hosts does not describe the site."""
    return [each for each in reports if not each.get("only")]


def hosts_of(found: Found, wanted: Collection[str], items: Sequence[Item] | None = None) -> dict[str, dict[str, Any]]:
    """Return the state of each host of the site.

    :param wanted: hosts that the run had to check.
    """
    items = found.items if items is None else items
    states = {}
    for host in sorted({*wanted, *found.seen}):
        count = sum(item.host == host for item in items)
        if host in found.unreached:
            state = UNREACHABLE
        elif host in found.refused:
            state = FAILED
        elif host not in found.seen or (not found.ended and not count):
            state = UNKNOWN
        else:
            state = DRIFT if count else CLEAN
        states[host] = {"state": state, "items": count}
    return states


def doubts(
    found: Found, hosts: Mapping[str, Mapping[str, Any]], stopped: str = "", *, judged: bool = True
) -> list[str]:
    """Return why a clean result would not be reliable: the parts that were not checked, each a sentence.

    :param stopped: why the run did not finish; empty if it did.
    :param judged: whether the run had to end with a verdict.
    """
    gaps = [stopped] if stopped else []
    if not found.ended and not stopped:
        gaps.append("the run did not finish")
    elif found.verdict is None and not stopped and judged:
        # A playbook ends at a play that has no host left, and the verdict is the last play.
        gaps.append("the run ended before the verdict, so the check is incomplete")
    gaps += found.blind
    for state, words in ((UNREACHABLE, "not reached"), (UNKNOWN, "not checked")):
        names = [name for name, host in hosts.items() if host["state"] == state]
        if names:
            gaps.append(f"{words}: {', '.join(names)}")
    return gaps


def exit_status(items: Sequence[Item], doubt: Sequence[str], verdict: str | None) -> int:
    """Return the exit status of a run in report mode.

    :param verdict: of the verifier: `pass`, `fail`, `unknown`, or None if it did not run.
    """
    if doubt:
        return EXIT_UNKNOWN
    if items or verdict == "fail":
        return EXIT_DRIFT
    return EXIT_UNKNOWN if verdict == "unknown" else EXIT_CLEAN


def headline(status: int, items: Sequence[Item], doubt: Sequence[str], verdict: str | None) -> str:
    """Return one line about a run in report mode."""
    person = sum(item.kind in FOR_A_PERSON and item.subject != CONNECTION for item in items)
    parts = []
    if items:
        left = f", {person} for an operator" if person else ""
        parts.append(f"{len(items)} {'item' if len(items) == 1 else 'items'} of drift{left}")
    if verdict == "fail":
        parts.append("the verdict is fail")
    if status == EXIT_UNKNOWN:
        return f"unknown: {'; '.join([*doubt, *parts]) or NO_VERDICT}"
    return "; ".join(parts) or "clean"


def finished(
    report: Mapping[str, Any],
    found: Found,
    items: Sequence[Item],
    wanted: Collection[str],
    now: float,
    *,
    stopped: str = "",
    doubt: Sequence[str] = (),
    held: str = "",
) -> dict[str, Any]:
    """Return the report of a run in report mode that has ended.

    :param items: the items that were found, with their ages.
    :param wanted: hosts that the run had to check.
    :param now: seconds since the epoch.
    :param stopped: why the run did not finish; empty if it did.
    :param doubt: other parts that were not checked, each a sentence.
    :param held: why a requested converge may change nothing now; else empty.
    """
    hosts = hosts_of(found, wanted, items)
    doubt = [*doubt, *doubts(found, hosts, stopped)]
    status = exit_status(items, doubt, found.verdict)
    line = headline(status, items, doubt, found.verdict)
    if held and status == EXIT_DRIFT and any(item.kind in REPAIRED for item in items):
        status, line = EXIT_HELD, f"held back: {held}; {line}"
    return {
        **report,
        "ended": now,
        "seconds": round(now - float(report["began"]), 1),
        "state": COMPLETE,
        "exit_status": status,
        "headline": line,
        "hosts": hosts,
        "items": [item.as_json() for item in ordered(items)],
        "consequences": [asdict(each) for each in found.consequences],
        "verdict": found.verdict,
        "notes": [*report["notes"], *verdict_notes(found)],
    }


def verdict_notes(found: Found) -> list[str]:
    """Return the checks of the verdict that did not pass, as notes."""
    return [f"verdict: {each}" for each in found.problems]


def ordered(items: Sequence[Item]) -> list[Item]:
    """Return the items in the order of tables: by host, the items for an operator last."""
    return sorted(items, key=lambda item: (item.host, item.kind in FOR_A_PERSON, item.first_seen, item.subject))


VARIABLE = "TRAINYARD_REVISION"
"""Environment variable: the revision that the schedule has chosen, as JSON. The program runs in its checkout."""

GIT_TIMEOUT = 60.0
"""Seconds for a local call of git."""

ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}
"""Environment without the configuration of the machine and of the user, and without password prompts."""

OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never")
"""Options that keep git from starting a program that the repository names."""


@dataclass(frozen=True)
class Revision:
    """The revision of a run.

    :param commit: 40 hexadecimal digits, or empty outside a repository.
    :param ref: name in the inventory: a branch, a tag or a commit.
    :param signed: whether an allowed signer has signed it; None if signatures are not required.
    :param note: why it is not the requested revision, or another note for the reader; else empty.
    :param may_converge: whether a run with it may change anything.
    :param refused: why the requested revision is not used, if only an operator can correct this; else empty.
    """

    commit: str
    ref: str
    signed: bool | None = None
    note: str = ""
    may_converge: bool = True
    refused: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def of_checkout(root: Path, environ: Mapping[str, str] = os.environ) -> Revision:
    """Return the revision of a checkout: the choice of the schedule, else HEAD with a note of changed files."""
    if given := environ.get(VARIABLE):
        return Revision(**json.loads(given))
    argv = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}", *OPTIONS]
    # The owner may be another user. These calls execute nothing from the checkout.
    env = {**ENVIRONMENT, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    try:
        commit = run([*argv, "rev-parse", "HEAD"], timeout=GIT_TIMEOUT, env=env).stdout.strip()
        ref = run([*argv, "rev-parse", "--abbrev-ref", "HEAD"], timeout=GIT_TIMEOUT, env=env).stdout.strip()
        changed = run([*argv, "status", "--porcelain"], timeout=GIT_TIMEOUT, env=env).stdout.splitlines()
    except CommandError as error:
        return Revision("", "", None, f"The revision of the checkout {root} is unknown: {error.message}")
    return Revision(commit, ref, None, f"{len(changed)} files of the checkout are changed." if changed else "")
