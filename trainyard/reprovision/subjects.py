"""What a changed result is about: one change for each file, unit, package or object that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ansible.module_utils.trainyard.core.untrusted import line

from .differences import MISSING, difference, short
from .events import Event

HIDDEN = "differs, not shown"
"""In place of a value of a task with `no_log`."""

MOST = 200
"""Changes of one result that are named; a role of the project writes some 20 files at once."""

MOST_NAMES = 2_000
"""Names of a list that are compared, each with each."""

MALFORMED = (TypeError, AttributeError, LookupError, ValueError, RecursionError)
"""Changes from a difference in another form than that of its module: a host chose it."""


@dataclass(frozen=True)
class Change:
    """One difference of a result.

    :param subject: what differs.
    :param before: what is there; `after` is what is wanted; both short.
    :param follows: it follows from another change and is none by itself, such as the restart after a file.
    :param because: paths whose change is the reason.
    """

    subject: str
    before: str = ""
    after: str = ""
    follows: bool = False
    because: tuple[str, ...] = ()


def changes(event: Event) -> list[Change]:
    """The changes of a result, in the order in which it names them; at least one where it has changed anything."""
    result = event["result"]
    if event["hidden"]:
        return [Change(event["task"].rpartition("| ")[2], HIDDEN, HIDDEN)]
    try:
        found = [_checked(each) for each in islice(_changes(event, result), MOST)]
    except MALFORMED:
        found = []
    return found or [Change(_about(event), after=short("; ".join(result.get("steps") or [])) or "changed")]


def _changes(event: Event, result: Mapping[str, Any]) -> Iterator[Change]:
    diff = result.get("diff")
    if isinstance(diff, dict) and "prepared" in diff:
        yield from BY_MODULE.get(event["module"], _plan)(diff["before"] or {}, diff["after"] or {}, result)
    elif diff:
        yield from _files(diff, result)


def _checked(change: Change) -> Change:
    """A change whose words are texts, whatever the host has put in their place."""
    because = tuple(str(each) for each in change.because[:MOST])
    return Change(
        line(str(change.subject)), short(str(change.before)), short(str(change.after)), change.follows, because
    )


def _about(event: Event) -> str:
    """What a result without a difference is about."""
    result = event["result"]
    arguments = result.get("arguments", {})
    command = result.get("cmd")
    if command:
        return short(command if isinstance(command, str) else " ".join(str(word) for word in command))
    name = next((arguments[each] for each in ("dest", "path", "unit", "name") if arguments.get(each)), "")
    kind = arguments.get("kind", "")
    found = " ".join(filter(None, (kind, f"{arguments['namespace']}/{name}" if arguments.get("namespace") else name)))
    return str(found or result.get("label") or event["task"].rpartition("| ")[2])


def _plan(before: Any, after: Any, result: Mapping[str, Any], name: Callable[[str], str] = str) -> Iterator[Change]:
    """A plan whose states are objects or files by name, or a list of names."""
    if isinstance(before, list) or isinstance(after, list):
        before, after = list(before)[:MOST_NAMES], list(after)[:MOST_NAMES]
        for each in [each for each in before if each not in after]:
            yield Change(name(str(each)), "there", MISSING)
        for each in [each for each in after if each not in before]:
            yield Change(name(str(each)), MISSING, "there")
        return
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key):
            yield Change(name(key), *difference(before.get(key), after.get(key)))


def _host_files(before: Any, after: Any, result: Mapping[str, Any]) -> Iterator[Change]:
    """Files, and programs that read them; these by themselves where an interrupted run has not run them."""
    yield from _plan(before, after, result)
    written = [step for step in result.get("steps") or [] if re.match("Write|Remove|Rename", step)]
    for step in result.get("steps") or []:
        if step.startswith("Run "):
            yield Change(step.removeprefix("Run "), "not run", "run", follows=bool(written))


def _packages(before: Mapping[str, Any], after: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name) or {}, after.get(name) or {}
        if old.get("version") != new.get("version"):
            yield Change(f"package {name}", old.get("version") or MISSING, str(new.get("version")))
        elif old != new:
            held, wanted = ("held" if each.get("held") else "not held" for each in (old, new))
            yield Change(f"hold of {name}", held, wanted)
    yield from (
        Change("unfinished packages", short(step), "installed")
        for step in result.get("steps") or []
        if step.startswith("Finish")
    )


def _unit(before: Mapping[str, Any], after: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Change]:
    name = str(result.get("arguments", {}).get("name") or "unit")
    # What a masked unit lacks besides cannot be told.
    yield from (Change(each, before[each], after[each]) for each in before if each.endswith(" masked"))
    if before.get("enabled") != after.get("enabled"):
        yield Change(f"{name} enabled", "disabled", "enabled")
    if before.get("active") != after.get("active"):
        yield Change(f"{name} running", "stopped", "running")
    for step in result.get("steps") or []:
        if step.startswith("Restart"):
            older = tuple(before.get("older_than") or ())
            reason = f"older than {', '.join(older)}" if older else "before its files change"
            yield Change(f"{name} restart", short(reason), "restarted", follows=not older, because=older)
        elif step.startswith("Reload the units"):
            yield Change(f"{name} units", "not read by systemd", "read", follows=len(result["steps"]) > 1)


def _kernel(before: Mapping[str, Any], after: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Change]:
    for name in after:
        prefix = "kernel module " if after[name] == "loaded" else "sysctl " if isinstance(after[name], str) else ""
        prefix = "" if name.endswith((".target", ".service")) else prefix
        if before.get(name) != after[name]:
            yield Change(prefix + name, *difference(before.get(name), after[name]))


def _kubeadm(before: Mapping[str, Any], after: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Change]:
    for step in result.get("steps") or []:
        if step.startswith("Leave the kubelet's configuration"):
            yield Change("mode of /var/lib/kubelet/config.yaml", "readable by others", "its owner's alone")
        elif not step.startswith("Keep the configuration that is asked for"):
            yield Change("membership of the cluster", MISSING, short(step))
            return
        else:
            yield Change("kubeadm configuration", "that of the cluster", "another one in the inventory")


def _mount(before: Mapping[str, Any], after: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Change]:
    path = str(result.get("arguments", {}).get("path") or "of shared files")
    yield Change(f"mount {path}", *difference(before, after))


def _training(before: Mapping[str, Any], after: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Change]:
    runs = [step for step in result.get("steps") or [] if re.search(r"\btraining\b", step)]
    for change in _plan(before, after, result):
        yield Change(f"run of {_run_of(runs)}", change.before, change.after) if change.subject == "training" else change


def _run_of(steps: Sequence[str]) -> str:
    found = re.search(r"training ([a-z0-9.-]+)", steps[-1]) if steps else None
    return found[1].rstrip(".") if found else "a training"


def _files(diff: Any, result: Mapping[str, Any]) -> Iterator[Change]:
    """Differences as the modules of Ansible give them: texts with headers, or states of one path."""
    for each in diff if isinstance(diff, list) else [diff]:
        if not isinstance(each, dict):
            continue
        before, after = each.get("before"), each.get("after")
        arguments = result.get("arguments", {})
        path = arguments.get("dest") or arguments.get("path")
        path = path or each.get("after_header") or each.get("before_header")
        if isinstance(before, dict) and isinstance(after, dict):
            path = path or after.get("path") or before.get("path")
        if before != after:
            lines = (each.splitlines() if isinstance(each, str) else each for each in (before or None, after or None))
            yield Change(str(path or "file"), *difference(*lines))


BY_MODULE: Mapping[str, Callable[[Any, Any, Mapping[str, Any]], Iterator[Change]]] = {
    "host_files": _host_files,
    "apt_packages": _packages,
    "systemd_unit": _unit,
    "kernel_settings": _kernel,
    "kubeadm_init": _kubeadm,
    "kubeadm_join": _kubeadm,
    "training": _training,
    "oci_push": lambda before, after, result: _plan(before, after, result, "image {}".format),
    "containerd_images": lambda before, after, result: _plan(
        before.get("pinned", {}), after.get("pinned", {}), result, "image {}".format
    ),
    "kubelet_certificates": lambda before, after, result: _plan(before, after, result, "certificate of {}".format),
    "mount_unit": _mount,
}
"""Module -> what its states are about; any other plan is about its own names."""
