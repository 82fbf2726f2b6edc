"""Turn the events of a check run into its result: items, their consequences, and parts that were not checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .items import CLUSTER, CONTROLLER, Item, class_of
from .playbook_runner import Event
from .subjects import Change, changes

LOCALHOST = "localhost"
LOCAL = (LOCALHOST, "127.0.0.1", "::1")

OF_THE_API = (
    *("kube_apply", "kube_prune", "k8s", "kubelet_certificates", "training"),
    *("node_drain", "node_marks"),
)
"""Modules that change objects of the cluster, on any host."""

LOOKING = "cluster_findings"
"""A module that checks the whole cluster from a host's play, and changes nothing."""

APPLYING = ("kube_apply", "training")
"""Modules that name an object by kind and name, and return it before and after."""

OF_THE_RUN = ("add_host", "group_by", "set_fact", "debug", "setup", "verify_site", "receipt_publish")
"""Modules that only record data for or about the run. They do not change the site."""

VERDICT = "verify"
"""The role whose failure is the verdict, and does not refuse a host."""

REFUSED = "a role refused to continue"
UNREACHABLE = "the host is unreachable"
CONNECTION = "connection"
REFUSAL = "refusal"
"""Subject of an item: a role refused the host."""
MEASURE = 400
"""Characters of a message in a report."""


@dataclass(frozen=True)
class Consequence:
    """A side effect of a repair, such as the restart after a file was written. It is not an item."""

    host: str
    role: str
    task: str
    what: str


@dataclass
class Found:
    """The result of a run.

    :param changed: the items that a task has changed, or would change: all except the refusals.
    :param refused: hosts that a role has refused; `unreached` has the unreachable hosts.
    :param seen: hosts that were checked at least in part.
    :param blind: reasons why something was not checked, each a sentence.
    :param ended: whether the run finished.
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
    """Return the result of one run of `site.yml --check --diff` from its events, in their order."""
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
        found.blind.append("a play on the controller failed")
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
    """Return the host of an item. Also return the host whose play has the task, if it is another one."""
    name = event["host"]
    if event["module"] == LOOKING:
        return CLUSTER, ""
    if event["module"] in OF_THE_API:
        return CLUSTER, "" if name == LOCALHOST else name
    if name == LOCALHOST:
        return CONTROLLER, ""
    # The controller pushes images to the mirror, and the mirror is the host that differs.
    if event["delegated"] in LOCAL and event["module"] != "oci_push":
        return CONTROLLER, name
    return (event["delegated"], name) if event["delegated"] not in ("", name, *LOCAL) else (name, "")


def _joined(items: Iterable[Item]) -> list[Item]:
    """Return each item once. The first of several equal items is the one that would repair it.

    Several plays include the same task, and several roles apply the same object, such as the namespace of the
    trainings.
    """
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
    """Move restarts from the items to the consequences if the same run would write the files that cause them."""
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
    """Return whether the repair of an item changes a path: the path, a file below it, or a program of a package."""
    in_folder = item.subject == path or item.subject.startswith(f"{path}/")
    return in_folder or (path.startswith("/usr/") and item.role == role and item.subject.startswith("package "))


def _ended(results: Sequence[Event], stats: Event | None) -> list[Event]:
    """Return the failures that removed a host from the run: neither ignored, nor rescued, nor of the verdict."""
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
        # The key must not depend on the first task, so the item has neither role nor module.
        return Item(host, "", "Reach the host", "", CONNECTION, reason=_message(event, UNREACHABLE))
    return Item(host, event["role"], event["task"], event["module"], REFUSAL, reason=_message(event, REFUSED))


def _message(event: Event, else_: str) -> str:
    text = str(event["result"].get("msg") or else_).removeprefix("Task failed: ")
    # ssh draws a frame of @ around its warning about a changed host key.
    text = " ".join(word for word in text.split() if word.strip("@"))
    return text if len(text) <= MEASURE else text[: MEASURE - 1] + "…"
