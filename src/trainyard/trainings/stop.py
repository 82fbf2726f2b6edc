"""Stop a run after it has saved, and delete its record and its files.

Parts: the pod that deletes the files of a run; the stop of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Plan, Step
from ..core.untrusted import at, is_name
from ..core.waiter import CLOCK, Clock, Pauses, Waits, pausing_until, wait_until
from ..kube.api import Api, Object, describe
from ..kube.apply import PatientApi
from ..kube.pod_log import last_lines
from . import record
from .again import manifest
from .log_events import last
from .names import MANAGED, MANIFEST_KEY, NAME_LABEL, RUNS, TOPOLOGY_ANNOTATION, result_name
from .pod_logs import TAIL, PodLogs, kept_logs
from .pod_places import decider, newest, place_of
from .pods import container_security, pod_security
from .run_index import LABELS, Found, find
from .run_state import attempt_of, grace, workload_of
from .tensorboard import tensorboard_name

DELETE_SECONDS = 300.0


def cleaner(found: Found, files: Mapping[str, str]) -> Object:
    """Return the pod that deletes a run's folder, or the contents of its own claim.

    :param files: `claim`, `folder`, `image` and `image_pull_policy` of a record.
    """
    folder = files["folder"]
    own = folder == "/logs"
    command = ["find", "/logs", "-mindepth", "1", "-delete"] if own else ["rm", "-rf", "--", folder]
    container = {
        "name": "cleaner",
        "image": files["image"],
        "imagePullPolicy": files.get("image_pull_policy", "IfNotPresent"),
        "command": command,
        "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [{"name": "logs", "mountPath": "/logs"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{found.name}-cleaner", "namespace": found.namespace, "labels": dict(MANAGED)},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "activeDeadlineSeconds": int(DELETE_SECONDS),
            "imagePullSecrets": [{"name": f"{found.name}-pull"}],
            "securityContext": pod_security(),
            "containers": [container],
            "volumes": [{"name": "logs", "persistentVolumeClaim": {"claimName": files["claim"]}}],
        },
    }


STOP_SECONDS = 150.0
"""Seconds that pods may take to end in addition to their grace period, in which they save."""
LOOK_SECONDS = 0.25
"""Interval of reading the logs, because a pod is gone about a second after its last line."""
REACHED = ("step", "checkpoint", "end")
"""Events that have the step that a run has reached."""
OWN = (
    ("v1", "Service"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("v1", "Secret"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    # Last: as long as the record exists, a repeated call finds the run.
    ("v1", "ConfigMap"),
)
"""Kinds of objects with the label of a run, in the order of their deletion."""
SHOWN = (("apps/v1", "Deployment"), ("v1", "Service"), ("networking.k8s.io/v1", "NetworkPolicy"))
"""Kinds of objects of the TensorBoard of a claim."""


class Stop:
    """The stop of one run.

    :param name: name of the run in any namespace, or the run as found in the cluster.
    :param log_dir: folder on the controller for the logs of all its pods; empty to keep none.
    :param say: shows a line of progress to the user.
    :param by: playbook or user that stops the run, for the message to its followers.
    """

    def __init__(
        self,
        api: Api,
        name: str | Found,
        log_dir: str,
        say: Callable[[str], None],
        clock: Clock = CLOCK,
        *,
        by: str = "playbooks/train_stop.yml",
    ) -> None:
        self._api = PatientApi(api, clock)
        self._found = find(api, name) if isinstance(name, str) else name
        self._log_dir = log_dir
        self._say = say
        self._clock = clock
        self._by = by
        self._manifest = record.kept(self._found.kept, MANIFEST_KEY)
        self.result: dict[str, Any] = record.read(self._found.kept)

    @property
    def namespace(self) -> str:
        return self._found.namespace

    def plan(self, *, delete: bool = False, forget: bool = False) -> Plan:
        """Return the steps to a stopped run.

        :param delete: also delete its record and its files.
        :param forget: also delete its record and its object, and keep its files.
        """
        found, steps = self._found, []
        if found.goes_on:
            steps.append(Step(f"Stop the run {found.name} after it has saved", Waits(self._stop, self._clock)))
        elif found.live is None and self.result.get("result") == record.RUNNING:
            # The process that stopped it died before it recorded this.
            steps.append(Step(f"Record that the run {found.name} has stopped", partial(self._keep, {})))
        if delete:
            steps.append(Step(f"Delete the files and the record of the run {found.name}", self._delete))
        elif forget:
            steps.append(Step(f"Delete the record of the run {found.name}", self._forget))
        before = {"run": found.name, "result": record.RUNNING if found.goes_on else self.result.get("result")}
        stopped = record.STOPPED if before["result"] == record.RUNNING else before["result"]
        after = {} if delete or forget else {"run": found.name, "result": stopped}
        return Plan(steps, before, after if steps else before)

    def _stop(self) -> Pauses[None]:
        """Delete the object of the run. Its pods save on SIGTERM and report their progress until the end."""
        found = self._found
        live = found.live or {}
        self._say(f"training {found.name}: stopping, it saves first")
        deciding = decider(live)
        seen: dict[str, Object] = {}
        kept = kept_logs(self._log_dir, found.namespace, found.name, attempt_of(live))
        logs = PodLogs(self._api, kept, first=None if kept.folder else TAIL)

        def left() -> list[Object]:
            pods = self._pods()
            seen.update({pod["metadata"]["name"]: pod for pod in pods})
            logs.read_all(pod for pod in pods if kept.folder or place_of(pod) == deciding)
            return pods

        left()
        self._announce(live)
        self._delete_object(live)

        yield from pausing_until(
            left, lambda pods: not pods, what=f"the pods of the run {found.name} to end",
            timeout=grace(live) + STOP_SECONDS, interval=LOOK_SECONDS,
            show=lambda pods: ", ".join(map(describe, pods)), clock=self._clock,
        )  # fmt: skip
        said = logs.said(newest(seen.values()).get(deciding))
        annotations = live["metadata"].get("annotations") or {}
        base = {
            "name": found.name,
            "workload": workload_of(live),
            "topology": annotations.get(TOPOLOGY_ANNOTATION, ""),
            "attempt": attempt_of(live),
        }
        # A stopped run continues from its last checkpoint, which may be beyond the last step that it has printed.
        step = next((each for each in reversed(said) if each["event"] in REACHED and "step" in each), {})
        reached = {"steps": step["step"]} if "step" in step else {}
        measured = last(said, "evaluate")
        learned = {"accuracy": measured["accuracy"]} if "accuracy" in measured else {}
        paths = {"logs": kept.paths} if kept.folder else {}
        self._keep({**base, **self.result, **reached, **learned, **paths})
        self._say(f"training {found.name}: stopped" + (f" at step {step['step']}" if reached else ""))

    def _announce(self, live: Object) -> None:
        """Record who stops the run, and its manifest, before the deletion.

        Followers read the first. With the manifest the run can continue, even if this process dies.
        """
        self.result = {**self.result, "stopped_by": self._by, "stop_asked_at": record.now()}
        self._manifest = manifest(live) if live["kind"] in RUNS else None
        if self._found.kept:
            outcome = {**self.result, "attempt": attempt_of(live)}
            record.change(self._api, self._found.kept, outcome, self._clock, manifest=self._manifest)

    def _keep(self, known: Mapping[str, Any]) -> None:
        self.result = {**self.result, **known, "result": record.STOPPED, "ended_at": record.now()}
        if self._found.kept:
            record.change(self._api, self._found.kept, self.result, self._clock, manifest=self._manifest)

    def _forget(self) -> None:
        found = self._found
        if found.live and not found.goes_on:
            self._delete_object(found.live)
        self._api.delete("v1", "ConfigMap", result_name(found.name), found.namespace)
        self.result = {}

    def _delete(self) -> None:
        """Delete all objects with the run's label, and its files on the claim; the namespace stays."""
        found = self._found
        if found.live and not found.goes_on:
            self._delete_object(found.live)
        if files := self.result.get("files"):
            self._empty(files)
        else:
            self._say(f"training {found.name}: the place of its files is not recorded, so they stay")
        self._hide(files or {})
        for version, kind in OWN:
            for obj in self._api.list(version, kind, labels=f"{LABELS},{NAME_LABEL}={found.name}"):
                meta = obj["metadata"]
                mine = self._claims_it(obj) if kind == "PersistentVolume" else meta.get("namespace") == found.namespace
                if mine:
                    self._api.delete(version, kind, meta["name"], meta.get("namespace"))
        self.result = {}

    def _claims_it(self, volume: Object) -> bool:
        """Return whether a volume is for a claim of this run.

        Volumes have no namespace, and their names are ambiguous: `team-a-mnist-logs` begins with `team-`.
        """
        claim, space = at(volume, "spec", "claimRef", "name"), at(volume, "spec", "claimRef", "namespace")
        if space != self._found.namespace or not is_name(claim):
            return False
        live = self._api.get("v1", "PersistentVolumeClaim", claim, space)
        # An interrupted call may have deleted the claim: then the volume's own label decides alone.
        return live is None or at(live, "metadata", "labels", NAME_LABEL) == self._found.name

    def _hide(self, files: Mapping[str, str]) -> None:
        """Delete the TensorBoard of the run's own claim, which cannot be deleted while a pod uses it."""
        if files.get("folder") == "/logs":
            name, namespace = tensorboard_name(files["claim"]), self._found.namespace
            for version, kind in SHOWN:
                self._api.delete(version, kind, name, namespace)
            self._api.delete("v1", "Secret", f"{name}-pull", namespace)

    def _empty(self, files: Mapping[str, str]) -> None:
        """Delete the run's files with a pod, because the claim may be of any storage class."""
        pod = cleaner(self._found, files)
        meta = pod["metadata"]
        self._api.delete("v1", "Pod", meta["name"], meta["namespace"], grace=0)
        self._api.apply(pod)
        self._say(f"training {self._found.name}: deleting its files")
        try:
            phase = wait_until(
                partial(self._phase, meta), lambda phase: phase in ("Succeeded", "Failed"),
                what=f"the files of the run {self._found.name} to be deleted", timeout=DELETE_SECONDS,
                clock=self._clock,
            )  # fmt: skip
            if phase == "Failed":
                log = "; ".join(last_lines(self._api.log(meta["namespace"], meta["name"], tail=12), 12))
                raise TrainyardError(
                    f"The files of the run {self._found.name} could not be deleted: {log}.",
                    remedy="Run this again; the record of the run was kept.",
                )
        finally:
            self._api.delete("v1", "Pod", meta["name"], meta["namespace"], grace=0)

    def _phase(self, meta: Mapping[str, str]) -> str:
        pod = self._api.get("v1", "Pod", meta["name"], meta["namespace"]) or {}
        return str((pod.get("status") or {}).get("phase", "absent"))

    def _delete_object(self, obj: Object) -> None:
        meta = obj["metadata"]
        self._api.delete(obj["apiVersion"], obj["kind"], meta["name"], meta["namespace"], uid=meta.get("uid", ""))

    def _pods(self) -> list[Object]:
        found = self._found
        return self._api.list("v1", "Pod", found.namespace, labels=f"{NAME_LABEL}={found.name}")
