"""A site that drifts and is repaired, in memory: its playbook, its cluster, and its locks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.unit.reprovision.sites import NOW, ended
from trainyard.drift.masking import Masker
from trainyard.drift.playbook_runner import Event, Played
from trainyard.drift.site_access import Locks
from trainyard.kube.api import Api
from trainyard.site_lock.holder import here

HOSTS = ("worker1", "worker2", "worker3")
LEASED = replace(here("reprovision", "run", NOW), leased=True)


def change(host: str, subject: str, role: str = "base", module: str = "kernel_settings") -> Event:
    """A change of a sysctl of a host, or of an object of the cluster."""
    diff = {"prepared": "Set", "before": {subject: "0"}, "after": {subject: "1"}}
    return {
        "event": "runner_on_ok", "host": host, "role": role, "task": "Set", "changed": True, "module": module,
        "hidden": False, "ignored": False, "looped": False, "delegated": "", "play": "", "created": "",
        "result": {"diff": diff, "steps": ["Set"]},
    }  # fmt: skip


def failure(host: str, event: str = "runner_on_failed") -> Event:
    """The end of a host's part of a run."""
    return {**change(host, "x"), "event": event, "changed": False, "result": {"msg": "the disk is full"}}


class World:
    """In place of ansible-runner.

    :param drift: subjects of each host's changes; those of `localhost` are objects of the cluster.
    :param kinds: what is not repairable, by subject: the module that says so.
    :param stays: hosts on which a repair does not last.
    :param fails: hosts on which a repair fails; `away` do not answer.
    :param breaks: hosts whose drift the verdict misses something for.
    """

    def __init__(self, drift: Mapping[str, list[str]], **named: Any) -> None:
        self.drift = {host: list(subjects) for host, subjects in drift.items()}
        self.stays, self.fails, self.away, self.breaks = (
            named.get(name, ()) for name in ("stays", "fails", "away", "breaks")
        )
        self.kinds: Mapping[str, str] = named.get("kinds", {})
        self.verdict = named.get("verdict", "pass")
        self.calls: list[str] = []

    def __call__(self, playbook: str, *, mode: str, masker: Masker, **options: Any) -> Played:
        hosts, objects = options["site_hosts"], "site_objects" not in options["extra"]
        without = "".join(f", {host} left as it is" for host in options["extra"].get("site_unready_hosts", ()))
        self.calls.append(f"{mode} {','.join(hosts) or 'all'}{'' if objects else ' hosts alone'}{without}")
        there = [host for host in HOSTS if not hosts or host in hosts]
        places = [*there, *(["localhost"] if objects else [])]
        events: list[Event] = []
        if mode == "check":
            for host in places:
                for subject in [] if host in self.away else self.drift.get(host, []):
                    module = "kube_apply" if host == "localhost" else self.kinds.get(subject, "kernel_settings")
                    role = "workloads" if host == "localhost" else "base"
                    events.append(change(host, subject, role, self.kinds.get(subject, module)))
        failed = [host for host in there if host in self.fails and mode == "run"]
        for host in places:
            if mode == "run" and host not in (*failed, *self.stays):
                self.drift[host] = []
        end = ended(*there)
        end[0]["result"]["verdict"] = self.verdict
        end[0]["result"]["problems"] = [f"{host} is broken" for host in self.breaks if self.drift.get(host)]
        end[-1]["failures"] = dict.fromkeys(failed, 1)
        end[-1]["dark"] = {host: 1 for host in there if host in self.away}
        events += [failure(host) for host in failed]
        events += [failure(host, "runner_on_unreachable") for host in there if host in self.away]
        return Played(masker.data([*events, *(end if objects else end[1:])]), 0, "", {"output.txt.gz": b"x"})


def cluster(
    unready: tuple[str, ...] = (), training: tuple[str, ...] = (), answers: bool = True, starts: bool = True,
    made: dict[str, Any] | None = None, waits: Callable[[], bool] = lambda: False,
) -> Api:  # fmt: skip
    """The cluster: nodes, and pods of a training on some of them.

    :param starts: whether new pods run.
    :param made: where those are kept, by name.
    :param waits: whether a pod of the system waits for its next start.
    """
    made = {} if made is None else made
    kinds = {"v1": ["Node", "Pod", "ConfigMap", "Event"], "apps/v1": ["Deployment"], "batch/v1": ["Job"],
             "jobset.x-k8s.io/v1alpha2": ["JobSet"]}  # fmt: skip
    ours = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": "mnist", "trainyard.dev/role": "worker"}
    run = {"metadata": {"name": "mnist", "namespace": "trainings", "labels": ours}, "spec": {}, "status": {}}

    def pod(node: str) -> dict[str, Any]:
        meta = {"name": f"mnist-{node}", "namespace": "trainings", "labels": ours}
        return {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": "Running"}}

    def crashing() -> list[dict[str, Any]]:
        waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}
        meta = {"name": "dns", "namespace": "kube-system"}
        return [{"metadata": meta, "spec": {"nodeName": "cp1"}, "status": waiting}] if waits() else []

    def transport(method: str, path: str, query: Any, body: Any, content: str) -> tuple[int, str]:
        if not answers:
            return 0, "connection refused"
        base, _, last = path.rpartition("/")
        group = path.removeprefix("/apis/").removeprefix("/api/").strip("/")
        if group in kinds:
            listed = [{"name": f"{each.lower()}s", "kind": each, "namespaced": each != "Node"} for each in kinds[group]]
            return 200, json.dumps({"resources": listed})
        if method == "POST":
            made[body["metadata"]["name"]] = {**body, "metadata": {**body["metadata"], "uid": "new"}}
            return 201, json.dumps(body)
        if base.endswith("/kube-system/pods"):
            there = made.pop(last, None) if method == "DELETE" else made.get(last)
            return (200, json.dumps({**there, "status": {"phase": "Running" if starts else "Pending"}})) if there else (
                404, "{}"
            )  # fmt: skip
        if path.endswith("/kube-system/pods"):
            return 200, json.dumps({"items": list(made.values()) if "labelSelector" in dict(query) else crashing()})
        if path.endswith("/kube-system/events"):
            about = {"involvedObject": {"uid": "new"}, "type": "Warning", "message": 'no runtime for "rnuc"'}
            return 200, json.dumps({"items": [about]})
        if base.endswith("/nodes"):
            status = {"conditions": [{"type": "Ready", "status": "False" if last in unready else "True"}]}
            return 200, json.dumps({"metadata": {"name": last}, "status": status})
        if last == "jobs" and training:
            return 200, json.dumps({"items": [run]})
        found = [pod(node) for node in training] if path == "/api/v1/pods" else []
        return 200, json.dumps({"items": found})

    return Api(transport)


@contextmanager
def leased(lost: str = "", leased: bool = True) -> Iterator[Locks]:
    """Locks with or without the lease."""
    notes = () if leased else ("There is no lease: no answer.",)
    yield Locks(replace(LEASED, leased=leased, notes=notes), lambda: lost)
