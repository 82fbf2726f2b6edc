"""A snapshot of everything in a cluster that may explain why a run waits, makes no steps or failed.

A snapshot is plain data: it can be saved to a file and judged again, which the tests do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..core.errors import TrainyardError
from ..kube.api import KubeError, Object
from ..kube.reads import Get, Reader, Unread, listing, log, objects, path
from ..trainings import found
from ..trainings.names import NAME_LABEL
from ..trainings.places import decider, newest, pod_state, started
from ..trainings.queue import Key, holders, open_nodes, shortages
from ..trainings.runs import by_run, saying
from . import slim

SCHEMA = 1
CHIEF_LINES = 300
"""Lines to read from the log of the deciding pod; the last ones show the pace of its steps."""
OTHER_LINES = 40
"""Lines to read from the logs of the run's other pods."""
LOGS = 24
"""Maximum number of other pods whose logs are read, ended ones first: a run may have a thousand pods."""

SYSTEM = "kube-system"
JOBSET_SYSTEM = "jobset-system"
LEASES = ("kube-scheduler", "kube-controller-manager")
"""Leases that the leaders of the control plane renew every few seconds."""


@dataclass(frozen=True)
class Snapshot:
    """The objects and logs of one run. A part that could not be read is an `Unread`; rules never treat it as empty.

    :param time: when it was read, ISO 8601 with its zone.
    :param names: of all runs, listed in the answer about an unknown run.
    :param live: the JobSet, Job or Deployment of the run; None if there is none.
    :param record: its record as an object; None if there is none.
    :param parts: `jobs`, `pods` (of the run), `events` (of its namespace), `nodes`, `everyone` (all pods that hold
        resources or belong to the system), `claims`, `volumes`, `classes`, `quotas`, `policies`, `space` (the
        namespace, a list of one), `leases` of the control plane. `elsewhere` is an `Unread` if the right to list pods
        of other namespaces is missing, so that `everyone` lacks them, and otherwise empty.
    :param logs: pod name -> last lines.
    :param others: `namespace/name` of runs that hold the resources this run waits for -> `[step, steps, seconds left]`.
    """

    run: str
    namespace: str
    time: str
    names: Sequence[str] = ()
    live: Object | None = None
    record: Object | None = None
    parts: Mapping[str, list[Object] | Unread] = field(default_factory=dict)
    logs: Mapping[str, str | Unread] = field(default_factory=dict)
    others: Mapping[str, Sequence[float | None]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the snapshot in the form of its file."""

        def kept(value: Any) -> Any:
            return {"unread": [value.path, value.status, value.reason]} if isinstance(value, Unread) else value

        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in ("run", "namespace", "time", "names", "live", "record")},
            "parts": {name: kept(value) for name, value in self.parts.items()},
            "logs": {name: kept(value) for name, value in self.logs.items()},
            "others": dict(self.others),
        }


def load(text: str) -> Snapshot:
    """Parse the text of a snapshot's file.

    :raises TrainyardError: the text is no snapshot.
    """

    def read(value: Any) -> Any:
        return Unread(*value["unread"]) if isinstance(value, dict) and "unread" in value else value

    try:
        known = json.loads(text)
        if known.pop("schema") != SCHEMA:
            raise ValueError("of another version")
        return Snapshot(
            **{
                **known,
                "parts": {name: read(value) for name, value in known["parts"].items()},
                "logs": {name: read(value) for name, value in known["logs"].items()},
            }
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TrainyardError(
            f"The file is no snapshot of a run: {error}.", remedy="Create one with trainyard why RUN --snapshot FILE."
        ) from error


def snapshot(run: str, namespace: str, now: datetime) -> Reader[Snapshot]:
    """Read everything about a run.

    :param namespace: of the run; empty to search, which needs the right to read runs of all namespaces.
    :raises TrainyardError: several namespaces have a run of this name.
    :raises KubeError: runs cannot be read.
    """
    there = yield from found.reading([namespace] if namespace else [])
    names = sorted({each.name for each in there.values()})
    if run in names:
        one = found.choose(there, run, namespace)
    else:
        # The data of a run is imported before the run is submitted.
        jobs = objects((yield listing("batch/v1", "jobs", namespace, labels=found.LABELS)))
        known = [] if isinstance(jobs, Unread) else jobs
        spaces = [each["metadata"]["namespace"] for each in known if each["metadata"]["name"] == f"{run}-import"]
        if not spaces:
            parts_ = {"jobs": jobs} if isinstance(jobs, Unread) else {}
            return Snapshot(run, namespace, now.isoformat(timespec="milliseconds"), names, parts=parts_)
        one = found.Found(run, spaces[0], None, None)
    space = one.namespace
    wanted = _wanted(run, space)
    answers = yield tuple(wanted.values())
    lists = list(wanted)[: -1 - len(LEASES)]
    parts: dict[str, list[Object] | Unread] = {
        name: objects(answer) for name, answer in zip(lists, answers, strict=False)
    }
    # These answers are single objects, not lists.
    parts["space"] = _whole(answers[len(lists)])
    parts["leases"] = _leases(answers[len(lists) + 1 :])
    parts["elsewhere"] = []
    if isinstance(everyone := parts["everyone"], Unread) and everyone.refused:
        parts["elsewhere"] = everyone
        parts["everyone"] = yield from _visible(space)
    pods = parts["pods"]
    logs = yield from _logs(one, [] if isinstance(pods, Unread) else pods)
    others = yield from _others(parts, (space, run))
    return Snapshot(
        run=run,
        namespace=space,
        time=now.isoformat(timespec="milliseconds"),
        names=names,
        live=slim.plain(one.live),
        record=slim.plain(one.kept),
        parts=slim.parts(parts, run),
        logs=logs,
        others=others,
    )


def _wanted(run: str, space: str) -> dict[str, Get]:
    mine = f"{NAME_LABEL} in ({run},{run}.import)"
    return {
        "jobs": listing("batch/v1", "jobs", space),
        "pods": listing("v1", "pods", space, labels=mine),
        "events": listing("v1", "events", space),
        "nodes": listing("v1", "nodes"),
        "everyone": listing("v1", "pods"),
        "claims": listing("v1", "persistentvolumeclaims", space),
        "volumes": listing("v1", "persistentvolumes"),
        "classes": listing("storage.k8s.io/v1", "storageclasses"),
        "quotas": listing("v1", "resourcequotas", space),
        "policies": listing("networking.k8s.io/v1", "networkpolicies", space),
        "space": Get(path("v1", "namespaces", name=space)),
        **{f"lease {name}": Get(path("coordination.k8s.io/v1", "leases", SYSTEM, name)) for name in LEASES},
    }


def _visible(space: str) -> Reader[list[Object] | Unread]:
    """Return the pods of the run's namespace and the system, for a user who may not list all pods."""
    answers = yield tuple(listing("v1", "pods", each) for each in (SYSTEM, JOBSET_SYSTEM, space))
    found_: list[Object] = []
    for answer in map(objects, answers):
        if isinstance(answer, Unread):
            return answer
        found_ += answer
    return found_


def _whole(answer: Any) -> list[Object] | Unread:
    """Return an object as a list of one; an empty list if it does not exist."""
    if isinstance(answer, Unread):
        return [] if answer.absent else answer
    return [answer]


def _leases(answers: Sequence[Any]) -> list[Object] | Unread:
    found_: list[Object] = []
    for answer in map(_whole, answers):
        if isinstance(answer, Unread):
            return answer
        found_ += answer
    return found_


def _logs(one: found.Found, pods: Sequence[Object]) -> Reader[dict[str, str | Unread]]:
    """Read the last lines of the logs of the newest pod of each place."""
    there = {place: pod for place, pod in newest(pods).items() if started(pod)}
    first = decider(one.live)
    others = sorted((place for place in there if place != first), key=lambda place: pod_state(there[place])[0])
    wanted = [*([first] if first in there else []), *others[:LOGS]]
    names = [str(there[place]["metadata"]["name"]) for place in wanted]
    answers = yield tuple(
        log(one.namespace, name, tail=CHIEF_LINES if place == first else OTHER_LINES)
        for place, name in zip(wanted, names, strict=True)
    )
    return {
        name: "" if isinstance(answer, Unread) and (answer.no_log or answer.absent) else answer
        for name, answer in zip(names, answers, strict=True)
    }


def _others(parts: Mapping[str, list[Object] | Unread], mine: Key) -> Reader[dict[str, Sequence[float | None]]]:
    """Read the progress of the runs that hold the resources a pod of this run waits for."""
    pods, nodes, everyone = (parts[name] for name in ("pods", "nodes", "everyone"))
    if isinstance(pods, Unread) or isinstance(nodes, Unread) or isinstance(everyone, Unread):
        return {}
    waiting = [pod for pod in newest(pods).values() if not pod["spec"].get("nodeName")]
    keys = {
        key
        for pod in waiting
        for key in holders(shortages(pod, open_nodes(pod, nodes), everyone))
        if key[1] and key != mine and not key[1].endswith(".import")
    }
    if not keys:
        return {}
    theirs = {key: newest(each) for key, each in by_run(everyone).items() if key in keys}
    try:
        there = yield from found.reading(sorted({space for space, _ in keys}))
        said = yield from saying({key: each for key, each in there.items() if key in keys}, theirs)
    except KubeError:  # The user may not read runs of these namespaces, so their time left stays unknown.
        return {}
    return {f"{key[0]}/{key[1]}": slim.progress(events) for key, events in said.items()}
