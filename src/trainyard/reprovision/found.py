"""From the events of a check run to what it has found: items, what follows from them, and what could not be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .classes import class_of
from .events import Event
from .item import CLUSTER, CONTROLLER, Item
from .subjects import Change, changes

LOCALHOST = "localhost"
LOCAL = (LOCALHOST, "127.0.0.1", "::1")

OF_THE_API = (
    *("kube_apply", "kube_prune", "k8s", "kubelet_certificates", "training"),
    *("node_drain", "node_marks"),
)
"""Modules that change objects of the cluster, from wherever they run."""

LOOKING = "cluster_findings"
"""A module that looks at the cluster as a whole from a host's play, and changes nothing."""

APPLYING = ("kube_apply", "training")
"""Modules that name an object by its kind and name, and show it before and after."""

OF_THE_RUN = ("add_host", "group_by", "set_fact", "debug", "setup", "verify_site", "receipt_publish")
"""Modules that note something for the run or about it; the site is the same afterwards."""

VERDICT = "verify"
"""The role whose failure is the verdict, and no refusal of a host."""

REFUSED = "a role refuses to go on"
UNREACHABLE = "the host is not reached"
CONNECTION = "connection"
REFUSAL = "refusal"
"""Subject of an item: a role has refused the host."""
MEASURE = 400
"""Characters of a message in a report."""


@dataclass(frozen=True)
class Consequence:
    """What a repair brings along, such as the restart after a file; it is no item."""

    host: str
    role: str
    task: str
    what: str


@dataclass
class Found:
    """What a run has found.

    :param changed: the items that a task has changed, or would: all but the refusals.
    :param refused: hosts that a role has refused; `unreached` are those that were not reached.
    :param seen: hosts on which something was looked at.
    :param blind: why something could not be told, each a sentence.
    :param ended: the run came to its end.
    """

    items: list[Item] = field(default_factory=list)
    changed: list[Item] = field(default_factory=list)
    consequences: list[Consequence] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)
    verdict: str | None = None
    problems: list[str] = field(default_factory=list)
    ended: bool = False


def find(events: Sequence[Event]) -> Found:
    """What the events of one run of `site.yml --check --diff` say, in their order."""
    stats = next((each for each in reversed(events) if each["event"] == "playbook_on_stats"), None)
    found = Found(ended=stats is not None)
    results = [each for each in events if "host" in each]
    for event in results:
        if event["module"] == "verify_site" and "verdict" in event["result"]:
            found.verdict = str(event["result"]["verdict"])
            found.problems = [str(each) for each in event["result"].get("problems") or []]
        if event["event"] in ("runner_on_ok", "runner_item_on_ok"):
            _changed(event, found)
    found.items = _joined(found.items)
    _set_aside_what_follows(found, results)
    found.changed = list(found.items)
    ended = _ended(results, stats)
    found.items += [_refusal(each) for each in ended]
    found.refused = sorted({each["host"] for each in ended if each["event"] != "runner_on_unreachable"})
    found.unreached = sorted({each["host"] for each in ended if each["event"] == "runner_on_unreachable"})
    found.refused = [host for host in found.refused if host != LOCALHOST]
    hosts = {each["host"] for each in results} | set((stats or {}).get("processed", {}))
    found.seen = sorted(hosts - {LOCALHOST})
    if any(each["host"] == LOCALHOST for each in ended):
        found.blind.append("the part of the run on the controller was refused")
    return found


def _changed(event: Event, found: Found) -> None:
    result = event["result"]
    host, via = _host(event)
    if not event["changed"] or event["module"] in OF_THE_RUN:
        return
    if result.get("planned") is False:
        why = result.get("unread") or "not planned"
        found.blind = list(dict.fromkeys([*found.blind, f"{event['role'] or event['module']}: {why}"]))
        return
    for change in changes(event):
        if change.follows:
            what = f"{change.subject}: {change.after}"
            found.consequences.append(Consequence(host, event["role"], event["task"], what))
        else:
            kind, reason = class_of(event["role"], event["module"], change.subject, change.before)
            found.items.append(_item(event, host, via, change, kind, reason))


def _item(event: Event, host: str, via: str, change: Change, kind: str, reason: str) -> Item:
    return Item(
        host, event["role"], event["task"], event["module"], change.subject, change.before, change.after, kind, reason,
        via=via,
    )  # fmt: skip


def _host(event: Event) -> tuple[str, str]:
    """Where an item belongs, and the host whose play has the task where that is another."""
    name = event["host"]
    if event["module"] == LOOKING:
        return CLUSTER, ""
    if event["module"] in OF_THE_API:
        return CLUSTER, "" if name == LOCALHOST else name
    if name == LOCALHOST:
        return CONTROLLER, ""
    # Images go from the controller to the mirror, which is the host that differs.
    if event["delegated"] in LOCAL and event["module"] != "oci_push":
        return CONTROLLER, name
    return (event["delegated"], name) if event["delegated"] not in ("", name, *LOCAL) else (name, "")


def _joined(items: Iterable[Item]) -> list[Item]:
    """Each thing once: several plays read the same task, and several roles apply the same object, such as the namespace
    of the trainings. The first of these is the one that would repair it."""
    there: dict[str, Item] = {}
    applied: set[tuple[str, str, str]] = set()
    for item in items:
        same = (item.subject, item.before, item.after)
        if item.key in there or not (item.host == CLUSTER and item.module in APPLYING and same in applied):
            there[item.key] = item
        if item.host == CLUSTER and item.module in APPLYING:
            applied.add(same)
    return list(there.values())


def _set_aside_what_follows(found: Found, results: Sequence[Event]) -> None:
    """A restart because of files that the same run would write is a consequence of these items."""
    because: dict[tuple[str, str], tuple[str, ...]] = {}
    for event in results:
        if event["module"] == "systemd_unit" and event["changed"]:
            because |= {(event["host"], each.subject): each.because for each in changes(event) if each.because}
    for item in list(found.items):
        reasons = because.get((item.host, item.subject), ())
        if not reasons:
            continue
        others = [each for each in found.items if each.host == item.host and each is not item]
        if all(any(_brings(each, path, item.role) for each in others) for path in reasons):
            found.items.remove(item)
            found.consequences.append(Consequence(item.host, item.role, item.task, f"{item.subject}: {item.after}"))


def _brings(item: Item, path: str, role: str) -> bool:
    """Whether putting an item right changes a path: itself, what lies in the folder, or a program of a package."""
    in_folder = item.subject == path or item.subject.startswith(f"{path}/")
    return in_folder or (path.startswith("/usr/") and item.role == role and item.subject.startswith("package "))


def _ended(results: Sequence[Event], stats: Event | None) -> list[Event]:
    """The results that ended a host's part of the run: neither ignored, nor rescued, nor the verdict."""
    last: dict[str, list[Event]] = {}
    for event in results:
        if event["event"] in ("runner_on_failed", "runner_on_unreachable") and not event["ignored"]:
            last.setdefault(event["host"], []).append(event)
    ended = []
    for host, events in last.items():
        failures = [each for each in events if each["event"] == "runner_on_failed" and each["role"] != VERDICT]
        unreached = [each for each in events if each["event"] == "runner_on_unreachable"]
        if stats is not None:
            verdicts = sum(each["event"] == "runner_on_failed" for each in events) - len(failures)
            counted = max(0, int(stats["failures"].get(host, 0)) - verdicts)
            failures = failures[-counted:] if counted else []
            unreached = unreached[-1:] if stats["dark"].get(host) else []
        ended += [*unreached[-1:], *failures[-1:]]
    return ended


def _refusal(event: Event) -> Item:
    host = CONTROLLER if event["host"] == LOCALHOST else event["host"]
    if event["event"] == "runner_on_unreachable":
        # One key, whichever task happens to be the first.
        return Item(host, "", "Reach the host", "", CONNECTION, reason=_message(event, UNREACHABLE))
    return Item(host, event["role"], event["task"], event["module"], REFUSAL, reason=_message(event, REFUSED))


def _message(event: Event, else_: str) -> str:
    told = str(event["result"].get("msg") or else_).removeprefix("Task failed: ")
    # What ssh says of another host key stands in a frame of these.
    told = " ".join(word for word in told.split() if word.strip("@"))
    return told if len(told) <= MEASURE else told[: MEASURE - 1] + "…"
