"""Load the site's own nftables table so that a mistake in it cannot lock the operator out.

A timer that restores the old state is started first, then the new table is loaded from /run. A later call over a new
connection writes the table to /etc, from where a unit loads it at boot, and stops the timer. So neither a closed SSH
port nor a power cut leaves a host with a table that admits no connection.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..core import files
from ..core.command import run
from ..core.errors import TrainyardError
from ..core.plan import MISSING, Change, Plan, Step
from ..core.untrusted import items, mapping
from . import facts
from .nftables import TABLE

KEPT = f"/{facts.FIREWALL}"
CANDIDATE = "/run/trainyard-firewall.nft"
"""On a file system in memory: after a power cut, the host has its old table."""
ROLLBACK = "trainyard-firewall-rollback"
MODE = 0o600
TIMEOUT = 20.0
PARENT, STARTED = 1, 19
"""Fields of /proc/PID/stat after the name: the parent, and the start in ticks since the boot."""
SUBJECT = " ".join(("nftables table", *TABLE))
RESTORE = 'nft --file "$0" || nft delete table inet trainyard'
"""Loads the kept table; without one, there was none before."""
CANONICAL = 'nft --file "$0" && exec nft --json list table inet trainyard'
OLD_REMEDY = "Remove ControlPath from ssh_args of ansible.cfg, so that Ansible can open a new one."
REMEDY = "Set firewall_admin_networks to the networks from which the controller connects."


def plan_armed(
    text: str, seconds: int, kept: str = KEPT, candidate: str = CANDIDATE, *, can_be_missing: bool = False
) -> Plan:
    """Plan to load a table that is removed again unless `plan_confirmed` comes in time.

    :param text: file for `nft --file`, which replaces the whole table.
    :param seconds: until the old state is restored.
    :param can_be_missing: nft may be absent, because check mode has not installed it.
    :raises CommandError: the text is no valid table, or nft is not installed.
    """
    if can_be_missing and shutil.which("nft") is None:
        return Plan([Step("Load the firewall's table", lambda: None, [Change(SUBJECT, MISSING, "the site's rules")])])
    wanted = _canonical(text, candidate)
    loaded, is_kept = _loaded(), facts.text_of(Path(kept)) == text
    if loaded == wanted and is_kept:
        return Plan()
    before = "other rules" if loaded else MISSING
    if loaded == wanted:
        before = "not loaded at boot"
    return Plan(
        [
            Step(
                f"Load the firewall's table, for {seconds} s until it is confirmed",
                partial(_arm, text, seconds, kept, candidate),
                [Change(SUBJECT, before, "the site's rules")],
            )
        ],
        {"rules": _lines(loaded)},
        {"rules": _lines(wanted)},
        by_subject=False,
    )


def plan_confirmed(kept: str = KEPT, candidate: str = CANDIDATE, *, over_ssh: bool = True) -> Plan:
    """Plan to keep the loaded table; nothing to do without one that waits for it.

    :param over_ssh: whether this process must belong to an SSH connection that is newer than the table.
    :raises TrainyardError: the old state was restored before this call, or the connection is not a new one.
    """
    text = facts.text_of(Path(candidate))
    if not text:
        return Plan()
    if over_ssh and _is_older(candidate):
        raise TrainyardError("The confirmation came over a connection that is older than the table.", remedy=OLD_REMEDY)
    return Plan([Step("Keep the firewall's table", partial(_confirm, text, kept, candidate))], by_subject=False)


def plan_absent(kept: str = KEPT) -> Plan:
    """Plan to remove the table and its file."""
    loaded = _loaded()
    steps = []
    if loaded:
        steps.append(Step("Remove the firewall's table", _remove, [Change(SUBJECT, "the site's rules", MISSING)]))
    if os.path.exists(kept):
        steps.append(Step(f"Remove {kept}", partial(os.unlink, kept), [Change(kept, "there", MISSING)]))
    return Plan(steps, {"rules": _lines(loaded)}, {"rules": []}, by_subject=False)


def _arm(text: str, seconds: int, kept: str, candidate: str) -> None:
    files.write(candidate, text, MODE)
    files.write(f"{candidate}.time", str(time.clock_gettime(time.CLOCK_BOOTTIME)), MODE)
    _stop()
    # The timer first: from here on, every end of this process restores the old state.
    timer = [
        "systemd-run",
        f"--unit={ROLLBACK}",
        "--collect",
        f"--on-active={seconds}",
        "--timer-property=AccuracySec=1s",
    ]
    run([*timer, "sh", "-c", RESTORE, kept], timeout=TIMEOUT)
    run(["nft", "--file", candidate], timeout=TIMEOUT)


def _confirm(text: str, kept: str, candidate: str) -> None:
    if _loaded() != _canonical(text, candidate):
        os.unlink(candidate)
        raise TrainyardError(
            "The firewall's table was removed again, because it was not confirmed in time.", remedy=REMEDY
        )
    # Written first: if the disk is full, the timer restores the old state.
    files.write(kept, text, MODE)
    _stop()
    os.unlink(candidate)


def _remove() -> None:
    _stop()
    run(["nft", "delete", "table", *TABLE], timeout=TIMEOUT)


def _stop() -> None:
    """Stop the timer, and the restoring program if it runs just now."""
    units = [f"{ROLLBACK}.timer", f"{ROLLBACK}.service"]
    # Status 5: the unit is not loaded (systemctl(1)).
    run(["systemctl", "stop", *units], timeout=TIMEOUT, ok=(0, 5))


def _is_older(candidate: str, proc: Path = Path("/proc")) -> bool:
    """Return whether the connection of this process existed before the table; false without SSH.

    The first sshd above this process serves the connection. It starts with it (proc_pid_stat(5), field 22: ticks since
    the boot, which no clock changes).
    """
    armed = float(facts.text_of(Path(f"{candidate}.time")) or 0)
    process = os.getpid()
    while process > 1:
        name, _, rest = facts.text_of(proc / str(process) / "stat").partition("(")[2].rpartition(")")
        fields = rest.split()
        if len(fields) < STARTED + 1:
            return False
        if name.startswith("sshd"):
            return int(fields[STARTED]) / os.sysconf("SC_CLK_TCK") < armed
        process = int(fields[PARENT])
    return False


def _loaded() -> Sequence[Any]:
    """Return the loaded table in the form of `_rules`; empty if there is none."""
    # Status 1: there is no such table.
    output = run(["nft", "--json", "list", "table", *TABLE], timeout=TIMEOUT, ok=(0, 1)).stdout
    return _rules(output) if output.strip() else []


def _canonical(text: str, near: str) -> Sequence[Any]:
    """Return a table as the kernel lists it. It is loaded in a network namespace of its own, which ends at once."""
    path = f"{near}.check"
    files.write(path, text, MODE)
    try:
        return _rules(run(["unshare", "--net", "sh", "-c", CANONICAL, path], timeout=TIMEOUT).stdout)
    finally:
        os.unlink(path)


def _rules(output: str) -> Sequence[Any]:
    """Return the objects in the output of `nft --json` (libnftables-json(5)), without what differs between loads."""
    return [
        _stable(each) for each in items(mapping(json.loads(output)).get("nftables")) if "metainfo" not in mapping(each)
    ]


def _stable(value: Any) -> Any:
    if isinstance(value, list):
        return [_stable(each) for each in value]
    if isinstance(value, dict):
        return {key: _stable(each) for key, each in value.items() if key != "handle"}
    return value


def _lines(rules: Sequence[Any]) -> list[str]:
    return [json.dumps(each, sort_keys=True) for each in rules]
