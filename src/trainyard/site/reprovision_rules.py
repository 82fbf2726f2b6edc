"""Rules about scheduled reprovisioning: its schedule and delay, windows, limits, hooks and credentials."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import TrainyardError
from . import schedule
from .site_model import Problem, Setting, Site, problem

UNTIL = "Until then the schedule does nothing."
"""Added to each refusal: a run begins with these rules, and a violation ends it."""

SHARES = ("reprovision_batch", "reprovision_max_hosts", "reprovision_max_unreachable")
COUNTS = ("reprovision_max_items", "reprovision_max_repeats", "reprovision_approval_hours", "reprovision_timeout")
CREDENTIALS = ("reprovision_vault_password_file", "reprovision_ssh_key_file")


def _refused(setting: Setting, fault: str, remedy: str, **where: Any) -> Problem:
    return problem(setting, fault, f"{remedy} {UNTIL}", **where)


def readable_schedule(site: Site) -> Iterator[Problem]:
    for setting in site.values("reprovision_schedule"):
        if not schedule.looks_right(str(setting.value)):
            yield _refused(setting, "not a calendar expression of systemd", schedule.REMEDY)


def readable_delay(site: Site) -> Iterator[Problem]:
    """Refuse an invalid delay. Each run reads it, not only the timer."""
    for setting in site.values("reprovision_delay"):
        try:
            schedule.seconds(str(setting.value))
        except TrainyardError as error:
            yield _refused(setting, "it is not a time span", error.remedy)


def open_windows(site: Site) -> Iterator[Problem]:
    """Refuse an invalid window, one that never opens, and overlapping windows, whose end is ambiguous."""
    for setting in site.values("reprovision_windows"):
        parsed, places = [], []
        for index, entry in enumerate(setting.value if isinstance(setting.value, list) else []):
            try:
                parsed.append(schedule.parse(entry if isinstance(entry, dict) else {}))
                places.append(index)
            except TrainyardError as error:
                yield _refused(setting, error.message, error.remedy, key=f"[{index}]", value=entry)
        both = schedule.overlapping(parsed, datetime.now(UTC))
        if both:
            first, second = (places[each] for each in both)
            remedy = "Merge the two windows, or end the earlier one when the later one begins."
            fault = f"it overlaps with the window [{first}]"
            yield _refused(setting, fault, remedy, key=f"[{second}]", value=setting.value[second])


def known_canary(site: Site) -> Iterator[Problem]:
    hosts = site.groups.get("cluster", ())
    for setting in site.values("reprovision_canary"):
        if setting.value and setting.value not in hosts:
            remedy = "Name a host of the cluster, or leave it empty to use the first host that has drifted."
            yield _refused(setting, "not a host of the cluster", remedy)


def possible_limits(site: Site) -> Iterator[Problem]:
    """Refuse limits of 0 and limits above 100%."""
    for name in SHARES:
        for setting in site.values(name):
            try:
                schedule.share(setting.value, 100)
            except TrainyardError as error:
                yield _refused(setting, "a limit is a share from 1% to 100%, or a number of hosts from 1", error.remedy)
    for name in COUNTS:
        for setting in site.values(name):
            if isinstance(setting.value, int) and setting.value < 1:
                yield _refused(setting, "it must be at least 1", "Set it to 1 or more.")


def possible_hooks(site: Site) -> Iterator[Problem]:
    """Refuse a hook that is neither a program nor an address with TLS."""
    here = not set(site.groups.get("controllers", ())) & set(site.addresses)
    for setting in site.values("reprovision_hooks"):
        for index, hook in enumerate(setting.value if isinstance(setting.value, list) else []):
            if not isinstance(hook, dict):
                continue
            fault, remedy = _fault_of(hook, here)
            if fault:
                # Without the value, because an address may contain a token.
                yield _refused(setting, fault, remedy, key=f"[{index}]", value=str(hook.get("name") or ""))


def _fault_of(hook: dict[str, Any], here: bool) -> tuple[str, str]:
    """Return the fault of a hook and the remedy; two empty texts without a fault.

    :param here: whether the hook will run on this machine, so that its program can be checked.
    """
    command, webhook = hook.get("command"), hook.get("webhook")
    if bool(command) == bool(webhook):
        return "a hook is either a command or a webhook", "Set one of the two."
    if webhook:
        address = urlsplit(str(webhook))
        if address.scheme != "https" or not address.hostname:
            return "without TLS others on the network can read the message", "Use an address with https://."
        return "", ""
    if not isinstance(command, list) or not str(command[0]).startswith("/"):
        return "a command is a list that begins with the absolute path of a program", "Write [/usr/bin/mail, root]."
    program = str(command[0])
    if here and not (Path(program).is_file() and os.access(program, os.X_OK)):
        return f"{program} does not exist, or is not executable", "Install it, or make it executable."
    return "", ""


def private_credentials(site: Site) -> Iterator[Problem]:
    """Refuse a file with a password or key that other users of this machine may read.

    A missing file is accepted, as the keys of a lab do not exist before its first run. The role refuses it later.
    """
    for name in CREDENTIALS:
        for setting in site.values(name):
            if not setting.value:
                continue
            path = Path(str(setting.value)).expanduser()
            try:
                mode = path.stat().st_mode
            except FileNotFoundError:
                continue
            except OSError as error:
                yield _refused(setting, f"it cannot be read: {error.strerror}", "Name a file of this machine.")
                continue
            if not stat.S_ISREG(mode):
                yield _refused(setting, "not a file", "Name a file of this machine.")
            elif mode & 0o077:
                yield _refused(setting, f"others may read it (mode {mode & 0o777:04o})", f"Run chmod 600 {path}.")


def known_signers(site: Site) -> Iterator[Problem]:
    """Refuse required signatures without an allowed signer."""
    for setting in site.values("reprovision_allowed_signers"):
        text = str(setting.value).strip()
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if text and (not lines or any(len(line.split()) < 3 for line in lines)):
            remedy = "Write lines of ssh-keygen's allowed signers, for example: alice@example.org ssh-ed25519 AAAA..."
            yield _refused(setting, "each line needs a name, a type of key and a key", remedy)


REPROVISION_RULES = (
    readable_schedule,
    readable_delay,
    open_windows,
    known_canary,
    possible_limits,
    possible_hooks,
    private_credentials,
    known_signers,
)
