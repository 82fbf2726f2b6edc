"""A snapshot of everything in a cluster that may explain why a run waits, makes no steps or failed.

A snapshot is plain data. A user can save it to a file and judge it again, as the tests do.

Parts: the reduction of objects; the snapshot. The reduction keeps the fields that rules need, without environments of
containers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..core.errors import TrainyardError
from ..kube.api import KubeError, Object
from ..kube.placement import OVER
from ..kube.reads import Get, Reader, Unread, listing, log, objects, path
from ..trainings import run_index
from ..trainings.log_events import Event, last
from ..trainings.names import NAME_LABEL
from ..trainings.pod_places import decider, newest, pod_state, started
from ..trainings.queue import Key, holders, open_nodes, shortages
from ..trainings.runs import by_run, saying, seconds_left

_META = ("name", "namespace", "uid", "labels", "creationTimestamp", "deletionTimestamp", "ownerReferences")
_POD = ("nodeName", "nodeSelector", "affinity", "tolerations", "overhead", "resources", "schedulingGates")
SYSTEMS = ("kube-system", "jobset-system", "calico-system", "trainyard-system")
"""Namespaces whose pods rules check for health; of other pods only the resources they hold matter."""


def plain(obj: Object | None) -> Object | None:
    """Return an object without managed fields, last-applied annotations and environments of containers."""
    if obj is None:
        return None
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    annotations = {
        key: value
        for key, value in (meta.get("annotations") or {}).items()
        if not key.endswith("last-applied-configuration")
    }
    found = {**obj, "metadata": {**meta, **({"annotations": annotations} if "annotations" in meta else {})}}
    return _without_environment(found)


def slim_parts(read: Mapping[str, list[Object] | Unread], run: str) -> dict[str, list[Object] | Unread]:
    """Return the parts of a snapshot in their reduced form."""
    found: dict[str, list[Object] | Unread] = {}
    for name, value in read.items():
        if isinstance(value, Unread):
            found[name] = value
        elif name == "everyone":
            found[name] = [_other(pod) for pod in value if _matters(pod)]
        elif name == "nodes":
            found[name] = [_node(each) for each in value]
        else:
            found[name] = [each for each in map(plain, value) if each is not None]
    return found


def progress(said: Sequence[Event]) -> Sequence[float | None]:
    """Return the progress of a run: step, total steps, and seconds left."""
    step = last(said, "step")
    return [step.get("step"), step.get("steps_total"), seconds_left(step)]


def _matters(pod: Object) -> bool:
    holds = pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in OVER
    return bool(holds) or pod["metadata"]["namespace"] in SYSTEMS


def _other(pod: Object) -> Object:
    """Return the resources that another pod holds; for a system pod also its status."""
    meta = {key: value for key, value in pod["metadata"].items() if key in _META}
    spec = {key: value for key, value in pod["spec"].items() if key in _POD}
    spec |= {
        kind: [_container(each) for each in pod["spec"][kind]]
        for kind in ("containers", "initContainers")
        if pod["spec"].get(kind)
    }
    status = pod.get("status") or {}
    if meta["namespace"] not in SYSTEMS:
        status = {key: value for key, value in status.items() if key == "phase"}
    return {"metadata": meta, "spec": spec, "status": status}


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in container.items() if key in ("name", "image", "resources", "restartPolicy")}


def _node(node: Object) -> Object:
    meta = {key: value for key, value in node["metadata"].items() if key in _META}
    status = node.get("status") or {}
    keep = {key: value for key, value in status.items() if key in ("allocatable", "capacity", "conditions", "nodeInfo")}
    return {"metadata": meta, "spec": node.get("spec") or {}, "status": keep}


def _without_environment(value: Any) -> Any:
    """Return the value without environments of containers, which may contain secrets."""
    if isinstance(value, Mapping):
        return {
            key: _without_environment(each)
            for key, each in value.items()
            if not (key in ("env", "envFrom") and "image" in value)
        }
    if isinstance(value, list):
        return [_without_environment(each) for each in value]
    return value


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
    there = yield from run_index.reading([namespace] if namespace else [])
    names = sorted({each.name for each in there.values()})
    if run in names:
        one = run_index.choose(there, run, namespace)
    else:
        # The data of a run is imported before the run is submitted.
        jobs = objects((yield listing("batch/v1", "jobs", namespace, labels=run_index.LABELS)))
        known = [] if isinstance(jobs, Unread) else jobs
        spaces = [each["metadata"]["namespace"] for each in known if each["metadata"]["name"] == f"{run}-import"]
        if not spaces:
            parts_ = {"jobs": jobs} if isinstance(jobs, Unread) else {}
            return Snapshot(run, namespace, now.isoformat(timespec="milliseconds"), names, parts=parts_)
        one = run_index.Found(run, spaces[0], None, None)
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
        live=plain(one.live),
        record=plain(one.kept),
        parts=slim_parts(parts, run),
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


def _logs(one: run_index.Found, pods: Sequence[Object]) -> Reader[dict[str, str | Unread]]:
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
        there = yield from run_index.reading(sorted({space for space, _ in keys}))
        said = yield from saying({key: each for key, each in there.items() if key in keys}, theirs)
    except KubeError:  # The user may not read runs of these namespaces, so their time left stays unknown.
        return {}
    return {f"{key[0]}/{key[1]}": progress(events) for key, events in said.items()}
