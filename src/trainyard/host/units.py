"""Keep a systemd unit running with the configuration on disk, decided from the running process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..core.command import run
from ..core.errors import CommandError, TrainyardError, WaitError
from ..core.finding import Finding, shown
from ..core.plan import Change, Plan, Step
from ..core.waiter import wait_until
from . import started_with

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "NeedDaemonReload",
    "ExecMainStartTimestampMonotonic",
    "ActiveEnterTimestampMonotonic",
    "FragmentPath",
    "DropInPaths",
    "InvocationID",
)
QUERY_TIMEOUT = 20.0
PROBE_TIMEOUT = 10.0
JOURNAL_LINES = 15
STEP_SECONDS = 60.0
"""Seconds that a file's time may be in the future and still count: a time service may set the clock back at its start.
"""
STARTS_AT_BOOT = frozenset({"enabled", "static", "generated", "alias", "indirect"})
"""UnitFileState values (systemctl(1), is-enabled) of units that need not be enabled."""
RESTARTING = frozenset(
    {"auto-restart", "auto-restart-queued", "dead-before-auto-restart", "failed-before-auto-restart"}
)
"""SubState values of a service that systemd restarts by itself, such as a kubelet before its node has joined.

systemd 254 added all but the first. For two of them, the ActiveState looks as if no restart followed.
"""


@dataclass(frozen=True)
class Service:
    """The desired unit.

    :param name: unit name with its suffix.
    :param newer_than: glob patterns of files that the process reads at its start; a later change causes a restart.
    :param restart: restart in any case (used in check mode for files that are only planned).
    :param ready: argv of a probe that succeeds once the service works; empty means no probe.
    :param ready_timeout: seconds until the probe must succeed.
    :param ready_remedy: remedy for the user if the probe fails.
    :param timeout: seconds for one start or restart.
    :param state: "started" or "stopped"; a stopped unit is also disabled at boot, and need not exist.
    """

    name: str
    newer_than: Sequence[str] = ()
    restart: bool = False
    ready: Sequence[str] = ()
    ready_timeout: float = 60.0
    ready_remedy: str = ""
    timeout: float = 120.0
    state: str = "started"


def observe(service: Service) -> dict[str, str]:
    """Return the unit's properties, by systemd's names."""
    return properties_of(service.name, PROPERTIES)


def properties_of(unit: str, names: Sequence[str]) -> dict[str, str]:
    """Return some properties of a unit, by systemd's names."""
    shown = run(["systemctl", "show", unit, f"--property={','.join(names)}"], timeout=QUERY_TIMEOUT)
    return dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)


def make_plan(
    service: Service,
    seen: Mapping[str, str],
    *,
    check_mode: bool,
    newer: Callable[[Sequence[str], float], list[str]] | None = None,
) -> Plan:
    """Plan from the unit's properties.

    :param seen: the result of `observe`.
    :param newer: takes paths and a start on the monotonic clock in seconds; returns the paths changed after it.
    :raises TrainyardError: the unit is missing or masked. In check mode, a missing one is planned for, and a masked one
        is shown as a finding, so that the rest of the host can be checked.
    """
    if service.state == "stopped":
        return _stop_plan(service, seen)
    if seen.get("LoadState") == "masked":
        if check_mode:
            finding = Finding(f"{service.name} masked", "masked", "not masked")
            return shown(Plan(), [finding])
        raise TrainyardError(
            f"The unit {service.name} is masked.",
            remedy=f"Find out why. If that is not intended, run `systemctl unmask {service.name}`.",
        )
    if seen.get("LoadState") == "not-found" and not check_mode:
        raise TrainyardError(f"The unit {service.name} does not exist.", remedy="Install the package that contains it.")
    steps = []
    if seen.get("NeedDaemonReload") == "yes":
        steps.append(_systemctl(service, "Reload the units of systemd", "daemon-reload"))
    reload = len(steps)
    enabled = seen.get("UnitFileState") in STARTS_AT_BOOT
    if not enabled:
        enabling = Change(f"{service.name} enabled", "disabled", "enabled")
        steps.append(_systemctl(service, f"Enable {service.name}", "enable", service.name, change=enabling))
    # systemd will start it with the current files, so no restart is needed.
    restarting = seen.get("SubState") in RESTARTING
    active = restarting or seen.get("ActiveState") in ("active", "reloading")
    reasons: list[str] = []
    read = [*service.newer_than, *seen.get("FragmentPath", "").split(), *seen.get("DropInPaths", "").split()]
    if not active:
        running = Change(f"{service.name} running", "stopped", "running")
        steps.append(Step(f"Start {service.name}", lambda: _start(service, "start", read), [running]))
    elif not restarting:
        # A timer has no process, so its activation time is used.
        began = seen.get("ExecMainStartTimestampMonotonic") or seen.get("ActiveEnterTimestampMonotonic")
        started = int(began or 0) / 1e6
        reasons = (newer or partial(changed_paths, service.name, seen.get("InvocationID", "")))(read, started)
        if reasons or service.restart:
            why = f": {', '.join(reasons)} changed after it started" if reasons else ""
            restart = _restart(service, reasons)
            steps.append(Step(f"Restart {service.name}{why}", lambda: _start(service, "restart", read), [restart]))
    if reload:
        unread = Change(f"{service.name} units", "not read by systemd", "read", follows=len(steps) > 1)
        steps[0] = replace(steps[0], changes=[unread])
    return Plan(
        steps,
        {"active": active, "enabled": enabled, "older_than": reasons},
        {"active": True, "enabled": True, "older_than": []},
        by_subject=False,
    )


def _restart(service: Service, reasons: Sequence[str]) -> Change:
    """Return the difference that a restart resolves. Without reasons, it follows from files that this run writes."""
    why = f"older than {', '.join(reasons)}" if reasons else "started before its files change"
    return Change(f"{service.name} restart", why, "restarted", follows=not reasons, because=tuple(reasons))


def _stop_plan(service: Service, seen: Mapping[str, str]) -> Plan:
    """Plan to stop a unit, now and at boot; a missing unit counts as stopped.

    A failed state is reset, because systemd would list it until the next boot, even without its files.
    """
    there = seen.get("LoadState") != "not-found"
    active = there and seen.get("ActiveState") not in ("inactive", "failed")
    enabled = there and seen.get("UnitFileState") == "enabled"
    failed = seen.get("ActiveState") == "failed"
    steps = []
    if active:
        stop = Change(f"{service.name} running", "running", "stopped")
        steps.append(Step(f"Stop {service.name}", lambda: _stop(service), [stop]))
    if failed:
        steps.append(
            Step(
                f"Reset the failed state of {service.name}",
                lambda: _forget(service),
                [Change(f"{service.name} failed", "failed", "stopped")],
            )
        )
    if enabled:
        disable = Change(f"{service.name} enabled", "enabled", "disabled")
        steps.append(_systemctl(service, f"Disable {service.name}", "disable", service.name, change=disable))
    return Plan(
        steps,
        {"active": active, "enabled": enabled, "failed": failed},
        {"active": False, "enabled": False, "failed": False},
        by_subject=False,
    )


def changed_paths(unit: str, invocation: str, patterns: Sequence[str], started: float) -> list[str]:
    """Return the existing files that changed since a unit read them: by content if recorded, otherwise by time.

    :param invocation: systemd's InvocationID of the current start; may be empty.
    :param started: time of the start, in seconds on the monotonic clock.
    """
    files = started_with.known(unit, invocation)
    by_time = [path for path in newer_paths(patterns, started) if path not in files]
    return sorted([*by_time, *started_with.changed(started_with.paths_of(patterns), files)])


def newer_paths(patterns: Sequence[str], started: float) -> list[str]:
    """Return the existing files among the patterns whose inode changed after a moment.

    The inode's change time counts, because unpacked files keep the modification time of the package's build.

    :param started: the moment, in seconds on the monotonic clock.
    """
    return [path for path in started_with.paths_of(patterns) if is_newer(os.stat(path).st_ctime, started)]


def is_newer(changed: float, started: float) -> bool:
    """Return whether a file changed after a moment.

    Ages are compared, so that a changed clock matters only between the two. A time in the future is from before the
    clock was set back, and is ignored until the clock has caught up.

    :param changed: change time of the file, in seconds since the epoch.
    :param started: the moment, in seconds on the monotonic clock.
    """
    return -STEP_SECONDS < time.time() - changed < time.monotonic() - started


def start(unit: str, verb: str, patterns: Sequence[str], timeout: float) -> None:
    """Start or restart a unit, and record the files that it reads.

    :param timeout: limit in seconds.
    """
    files = started_with.snapshot(patterns)
    run(["systemctl", verb, unit], timeout=timeout)
    started_with.remember(unit, properties_of(unit, ("InvocationID",)).get("InvocationID", ""), files)


def wait_ready(service: Service) -> None:
    """Wait until the probe succeeds.

    :raises WaitError: it did not succeed in time; the message ends with the last lines of the unit's journal.
    """
    if not service.ready:
        return

    def probe() -> str:
        try:
            run(service.ready, timeout=PROBE_TIMEOUT)
        except CommandError as error:
            return error.message
        return ""

    try:
        wait_until(probe, lambda failure: not failure, what=f"{service.name} to answer", timeout=service.ready_timeout)
    except WaitError as error:
        raise WaitError(f"{error.message}{_journal(service)}", remedy=service.ready_remedy, **error.facts) from error


def _systemctl(service: Service, what: str, *words: str, change: Change | None = None) -> Step:
    act = lambda: run(["systemctl", *words], timeout=service.timeout)  # noqa: E731
    return Step(what, act, [change] if change else [])


def _stop(service: Service) -> None:
    run(["systemctl", "stop", service.name], timeout=service.timeout)
    # A program that is stopped while working counts as failed.
    _forget(service)


def _forget(service: Service) -> None:
    # Status 1: systemd does not know the unit.
    run(["systemctl", "reset-failed", service.name], timeout=QUERY_TIMEOUT, ok=(0, 1))


def _start(service: Service, verb: str, patterns: Sequence[str]) -> None:
    # A unit that has failed too often refuses to start until its counter is reset.
    _forget(service)
    try:
        start(service.name, verb, patterns, service.timeout)
    except CommandError as error:
        raise TrainyardError(f"{service.name} did not {verb}: {error.message}{_journal(service)}") from error


def _journal(service: Service) -> str:
    try:
        shown = run(
            ["journalctl", "--no-pager", "--output=cat", f"--lines={JOURNAL_LINES}", f"--unit={service.name}"],
            timeout=QUERY_TIMEOUT,
        )
    except CommandError:
        return ""
    return f"\nIts last lines in the journal:\n{shown.stdout.strip()}"
