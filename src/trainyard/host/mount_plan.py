"""Plan and perform the changes of a mount."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.files import write
from ..core.plan import Change, Plan, Step
from .mounts import UNITS, Mount, Seen, differs, entry_at, read_ahead_path, retry_text, some, unit_text
from .units import QUERY_TIMEOUT, STARTS_AT_BOOT

GRACE = 30
"""Seconds for systemctl in addition to the unit's own limit, to kill the mount helper."""


def make_plan(mount: Mount, seen: Seen) -> Plan:
    """Plan the desired mount from the observed state.

    :raises TrainyardError: the folder has other files or another mount, or pods use a mount that must be replaced.
    """
    text, retry = unit_text(mount), retry_text(mount)
    _refuse_other(mount, seen, text)
    steps = []
    if not seen.folder:
        steps.append(Step(f"Create the folder {mount.path}", partial(os.makedirs, mount.path, 0o755, exist_ok=True)))
    if seen.unit != text:
        steps.append(Step(f"Write {mount.unit_path}", partial(write, mount.unit_path, text, 0o644)))
    if seen.retry != retry:
        steps.append(Step(f"Write {mount.retry_path}", partial(write, mount.retry_path, retry, 0o644)))
    if (seen.unit, seen.retry) != (text, retry) or seen.properties.get("NeedDaemonReload") == "yes":
        steps.append(_systemctl(mount, "Reload the units of systemd", "daemon-reload"))
    if seen.properties.get("UnitFileState") not in STARTS_AT_BOOT:
        steps.append(_systemctl(mount, f"Enable the mount of {mount.path} at boot", "enable", mount.unit))
    if seen.entry is None:
        steps.append(Step(f"Mount {mount.source} at {mount.path}", partial(_mount, mount, "start")))
    elif seen.unit != text or seen.older:
        _refuse_use(mount, seen, "remounted")
        steps.append(Step(f"Remount {mount.path}", partial(_mount, mount, "restart")))
    elif mount.read_ahead_kb and seen.read_ahead_kb not in (None, mount.read_ahead_kb):
        steps.append(Step(f"Set the read-ahead to {mount.read_ahead_kb} KiB", partial(_read_ahead, mount)))
    before: dict[str, Any] = {"unit": seen.unit or "", "mounted": seen.entry is not None}
    after: dict[str, Any] = {"unit": text, "mounted": True}
    if mount.read_ahead_kb:
        before["read_ahead_kb"], after["read_ahead_kb"] = seen.read_ahead_kb, mount.read_ahead_kb
    return _about(mount, steps, before, after)


def _about(mount: Mount, steps: list[Step], before: dict[str, Any], after: dict[str, Any]) -> Plan:
    """Return a plan whose only difference is the mount as a whole."""
    if steps:
        steps[0] = replace(steps[0], changes=[Change(f"mount {mount.path}", before, after)])
    return Plan(steps, before, after, by_subject=False)


def _refuse_other(mount: Mount, seen: Seen, text: str) -> None:
    if seen.properties.get("LoadState") == "masked":
        raise TrainyardError(
            f"The unit {mount.unit} is masked.",
            remedy=f"Find out why. If that is not intended, run `systemctl unmask {mount.unit}`.",
        )
    if seen.inside:
        raise TrainyardError(
            f"{mount.path} holds other files, which the mount would hide: {some(seen.inside)}.",
            remedy="Move them, or mount at another path.",
        )
    if seen.others:
        raise TrainyardError(
            f"The files that the nodes share are mounted at {some(seen.others)}, too, by a unit of trainyard.",
            remedy="Unmount that first (efs_mount_mode absent with the old efs_mount_path), or restore the old path.",
        )
    if seen.entry is None:
        return
    # Our mount has another source only before a remount. Otherwise another mount is over it or in its place.
    ours = seen.unit is not None and (seen.unit != text or seen.older or not differs(mount, seen.entry))
    if not ours:
        place = seen.properties.get("FragmentPath", "")
        by = f" by {place}" if place and not place.startswith(UNITS) else ""
        raise TrainyardError(
            f"{seen.entry.source} ({seen.entry.fstype}) is mounted at {mount.path} already{by}.",
            remedy="Unmount it, and remove it from /etc/fstab. Or keep that mount "
            "(storage_backend shared_path, efs_mount_mode none).",
        )


def make_removal(mount: Mount, seen: Seen) -> Plan:
    """Plan to unmount the mount of our unit and to remove the unit; the folder stays.

    :raises TrainyardError: pods use the mount.
    """
    if seen.unit is None:
        return Plan()
    steps = []
    if seen.retry is not None:
        steps += [
            _systemctl(mount, f"Stop the retries to mount {mount.path} ({mount.retry})", "stop", mount.retry),
            Step(f"Remove {mount.retry_path}", partial(os.unlink, mount.retry_path)),
        ]
    if seen.entry is not None:
        _refuse_use(mount, seen, "unmounted")
        if seen.answers:
            steps.append(Step(f"Unmount {mount.path}", partial(_mount, mount, "stop")))
        else:
            steps.append(Step(f"Force the unmount of {mount.path}: no answer from its server", partial(_let_go, mount)))
    steps += [
        _systemctl(mount, f"Disable the mount of {mount.path} at boot", "disable", mount.unit),
        Step(f"Remove {mount.unit_path}", partial(os.unlink, mount.unit_path)),
        _systemctl(mount, "Reload the units of systemd", "daemon-reload"),
    ]
    before = {"unit": seen.unit, "mounted": seen.entry is not None}
    return _about(mount, steps, before, {"unit": "", "mounted": False})


def _refuse_use(mount: Mount, seen: Seen, what: str) -> None:
    if seen.users:
        raise TrainyardError(
            f"{mount.path} must be {what}, but is in use by {some(seen.users)}.",
            remedy="Drain the node (kubectl drain NODE --ignore-daemonsets --delete-emptydir-data), run this again, "
            "and uncordon it. Or restore the previous mount settings.",
        )


def _systemctl(mount: Mount, what: str, *words: str) -> Step:
    return Step(what, lambda: run(["systemctl", *words], timeout=mount.timeout + GRACE))


def _mount(mount: Mount, verb: str) -> None:
    run(["systemctl", "reset-failed", mount.unit], timeout=QUERY_TIMEOUT, ok=(0, 1))
    try:
        run(["systemctl", verb, mount.unit], timeout=2 * mount.timeout + GRACE)
    except CommandError as error:
        shown = run(
            ["journalctl", "--no-pager", "--output=cat", "--lines=10", f"--unit={mount.unit}"],
            timeout=QUERY_TIMEOUT,
            ok=(0, 1),
        )
        raise TrainyardError(
            f"{mount.unit} ({mount.source} at {mount.path}) did not {verb}: {error.message}\n"
            f"The last lines of its journal:\n{shown.stdout.strip()}",
            remedy="Check that the server runs, its name resolves here, it admits this host, and no program has its "
            "files open.",
        ) from error
    if verb != "stop":
        _read_ahead(mount)


def _let_go(mount: Mount) -> None:
    """Unmount although the server is gone. Blocked processes get an error; no call here can block on the server."""
    argv = ["umount", "--internal-only", "--no-canonicalize", "--force", "--lazy", mount.path]
    try:
        run(argv, timeout=mount.probe_timeout)
    except CommandError:
        # The mount disappears at once, but the final exchange with the server may time out.
        if entry_at(mount.path):
            raise


def _read_ahead(mount: Mount) -> None:
    entry = entry_at(mount.path)
    if entry and mount.read_ahead_kb and os.path.exists(read_ahead_path(entry.device)):
        with open(read_ahead_path(entry.device), "w", encoding="ascii") as stream:
            stream.write(str(mount.read_ahead_kb))
