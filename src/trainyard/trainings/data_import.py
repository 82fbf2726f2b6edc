"""Import of a run's data onto its claim before the run is submitted.

Parts: the networks that an import must not reach; the Job that imports data onto a claim; the import. The networks are
cloud metadata, and the cluster's pods and Services. The Job's pod is the only pod of a run that may reach a server
outside the cluster.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

from ..core.errors import TrainyardError
from ..core.untrusted import at, line
from ..core.waiter import CLOCK, Clock, wait_until
from ..kube.api import Api, KubeError, Object, describe
from ..kube.apply import PatientApi, content_hash
from ..kube.pod_log import last_lines
from .foreign_objects import refuse_foreign
from .log_events import Event, events, last
from .model import Import, Training
from .names import HASH_ANNOTATION, JOB_API, MANAGED, NAME_LABEL
from .objects import dns_egress, of_run, policy
from .pod_places import pod_state
from .pods import container_security, pod_security, pull_secrets
from .roles import EXIT_REFUSED
from .run_state import ended
from .template import CODE

ALWAYS = (
    "169.254.0.0/16",  # link-local (RFC 3927), with the metadata of most clouds
    "fe80::/10",  # link-local (RFC 4291)
    "fd00:ec2::254/128",  # metadata of AWS
    "100.100.100.200/32",  # metadata of Alibaba Cloud
    "168.63.129.16/32",  # metadata of Azure
)
_CONFIGURED = re.compile(
    r"^\s{0,8}(?:podSubnet|serviceSubnet): *[\"']?([0-9a-fA-F.:/,]{1,200})[\"']?\s*$", re.MULTILINE
)
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(api: Api) -> tuple[str, ...]:
    """Return `ALWAYS` and kubeadm's networks of pods and Services.

    The latter are left out if the user may not read them.

    :raises KubeError: the cluster does not answer.
    """
    try:
        found = api.get("v1", "ConfigMap", "kubeadm-config", "kube-system")
    except KubeError as error:
        if error.status != 403:
            raise
        found = None
    said = at(found, "data", "ClusterConfiguration")
    values = ",".join(_CONFIGURED.findall(said)) if isinstance(said, str) else ""
    return (*ALWAYS, *(str(each) for each in map(_network, values.split(",")) if each))


def peers(host: str, closed: tuple[str, ...]) -> list[Object]:
    """Return the peers that a policy allows for a server: its address, or for a name all but the closed networks.

    A NetworkPolicy matches addresses only, and the addresses of a name may change.

    :param host: address or name of the server.
    :raises TrainyardError: the address is in a closed network.
    """
    shut = [each for each in map(_network, closed) if each]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return [_all_but("0.0.0.0/0", 4, shut), _all_but("::/0", 6, shut)]
    plain = getattr(address, "ipv4_mapped", None) or address
    for each in shut:
        if plain in each:
            raise TrainyardError(
                f"The address {line(host, 80)} of the data is in {each}, which imports must not reach.",
                remedy="Use a server outside the cluster.",
            )
    return [{"ipBlock": {"cidr": f"{address}/{address.max_prefixlen}"}}]


def _all_but(cidr: str, version: int, shut: list[_Network]) -> Object:
    return {"ipBlock": {"cidr": cidr, "except": [str(each) for each in shut if each.version == version]}}


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


IMPORT_SECONDS = 6 * 3600
"""Time limit of the whole import, whose server may be slow."""
RETRIES = 3
"""Number of retries. Each continues where the previous one ended."""
MOUNT = "/datasets"
AUTHORITY = "/authority"


def name_of(training: Training) -> str:
    """Return the name of the Job and of its supporting objects."""
    return f"{training.name}-import"


def pod_labels(training: Training) -> dict[str, str]:
    """Return the labels of the Job's pod.

    They are not those of the run's pods, which may not reach what this pod may reach. No run can have such a name.
    """
    return {**MANAGED, NAME_LABEL: f"{training.name}.import"}


def job(training: Training, wanted: Import) -> Object:
    """Return the Job that runs `workloads/data_import` on the training's claim."""
    said = {"url": wanted.url, "sha256": wanted.sha256, "destination": f"{MOUNT}/{training.data_folder}"}
    volumes: list[Object] = [
        {"name": "datasets", "persistentVolumeClaim": {"claimName": training.data_claim}},
        {"name": "code", "image": {"reference": wanted.code, "pullPolicy": training.image_pull_policy}},
    ]
    mounts: list[Object] = [
        {"name": "datasets", "mountPath": MOUNT},
        {"name": "code", "mountPath": CODE, "readOnly": True},
    ]
    env = [{"name": "PYTHONPATH", "value": CODE}]
    if wanted.authority:
        volumes.append({"name": "authority", "configMap": {"name": name_of(training)}})
        mounts.append({"name": "authority", "mountPath": AUTHORITY, "readOnly": True})
        env.append({"name": "SSL_CERT_FILE", "value": f"{AUTHORITY}/ca.crt"})
    container = {
        "name": "import",
        "image": wanted.image,
        "imagePullPolicy": training.image_pull_policy,
        "command": ["/opt/venv/bin/python", "-m", "data_import.main", *(f"--{key}={it}" for key, it in said.items())],
        "env": env,
        "resources": {"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": container_security(),
        "volumeMounts": mounts,
    }
    refused = {"containerName": "import", "operator": "In", "values": [EXIT_REFUSED]}
    return {
        "apiVersion": JOB_API,
        "kind": "Job",
        "metadata": {
            "name": name_of(training),
            "namespace": training.namespace,
            "labels": MANAGED,
            "annotations": {HASH_ANNOTATION: content_hash([said, wanted.image, wanted.code])},
        },
        "spec": {
            "backoffLimit": RETRIES,
            "activeDeadlineSeconds": IMPORT_SECONDS,
            # Deletes the Job if the process that waits for it dies first.
            "ttlSecondsAfterFinished": 600,
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": refused}]},
            "template": {
                "metadata": {"labels": pod_labels(training)},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    **pull_secrets(training),
                    "securityContext": pod_security(),
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    }


def around(training: Training, wanted: Import, closed: tuple[str, ...] = ALWAYS) -> list[Object]:
    """Return the supporting objects of the Job: egress to the server's port only, and its certificate authority.

    :param closed: networks that stay blocked, even if the server's name resolves to one of them.
    :raises TrainyardError: the URL has an address in one of them.
    """
    parts = urllib.parse.urlsplit(wanted.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    egress = {"to": peers(parts.hostname or "", closed), "ports": [{"port": port, "protocol": "TCP"}]}
    spec = {
        "podSelector": {"matchLabels": pod_labels(training)},
        "policyTypes": ["Egress"],
        "egress": [egress, dns_egress()],
    }
    found = [policy(training, name_of(training), spec)]
    if wanted.authority:
        meta = {"name": name_of(training), "namespace": training.namespace, "labels": of_run(training)}
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": wanted.authority}})
    return found


GONE_SECONDS = 60.0


class DataImport:
    """One import.

    :param say: shows a line of progress to the user.
    """

    def __init__(
        self, api: Api, training: Training, wanted: Import, say: Callable[[str], None], clock: Clock = CLOCK
    ) -> None:
        self._api, self._training, self._wanted = PatientApi(api, clock), training, wanted
        self._clock = clock
        self._say = lambda line: say(f"data of {training.name}: {line}")
        self._job = job(training, wanted)
        self._uid = ""
        """UID of the Job that is followed."""

    def bring(self) -> None:
        """Import the data unless it is on the claim already; continue an interrupted import.

        :raises TrainyardError: the import failed, with the program's own message, or its pod does not start in time.
        """
        self._give_way_to_none()
        for obj in around(self._training, self._wanted, networks(self._api)):
            self._api.apply(obj)
        try:
            self._create()
            self._follow()
        finally:
            self._remove()

    def _give_way_to_none(self) -> None:
        """Delete a Job that has ended or imports other data. A running Job for the same data stays and is followed."""
        live = self._find()
        refuse_foreign(live)
        if live and (ended(live) or _hash(live) != _hash(self._job)):
            self._delete(live)

    def _create(self) -> None:
        """Create the Job, or adopt an existing one, whose creator died or whose creation's response was lost."""
        try:
            made: Object | None = self._api.create(self._job)
        except KubeError as error:
            if error.status != 409:
                raise
            made = self._find()
        if made is None or _hash(made) != _hash(self._job):
            raise self._lost()
        self._uid = _uid(made)

    def _follow(self) -> None:
        said: dict[str, Any] = {"line": "", "waiting": self._training.start_timeout}

        def look() -> Object:
            live, pods = self._find(), self._pods()
            if live is None or _uid(live) != self._uid:
                raise self._lost()
            line, found = self._line(pods)
            if line != said["line"]:
                said["line"] = line
                self._say(line)
            said["waiting"] -= 0 if found or ended(live) else 1
            return live

        live = wait_until(
            look,
            lambda live: bool(ended(live)) or said["waiting"] < 0,
            what=f"the data of the run {self._training.name}",
            timeout=IMPORT_SECONDS,
            show=lambda _: said["line"],
            clock=self._clock,
        )
        if ended(live) != "Completed":
            raise self._failure(said["line"])

    def _line(self, pods: list[Object]) -> tuple[str, list[Event]]:
        """Return the last report of the newest pod, or its state while it reports nothing, and its events."""
        if not pods:
            return "its pod does not exist yet", []
        pod = pods[-1]
        found = events(self._log(pod))
        if not found:
            return f"its pod is {': '.join(filter(None, pod_state(pod)))}", []
        event = found[-1]
        shown = {"end": event.get("result"), "error": event.get("message")}
        bytes_ = f"{event['bytes'] / 1e6:.0f} MB" if isinstance(event.get("bytes"), int | float) else ""
        return ", ".join(str(part) for part in (shown.get(event["event"], event["event"]), bytes_) if part), found

    def _failure(self, line: str) -> TrainyardError:
        pods = self._pods()
        text = self._log(pods[-1]) if pods else ""
        error = last(events(text), "error")
        line = "; ".join([line, *self._warnings()])
        return TrainyardError(
            f"The data of the run {self._training.name} cannot be imported from {self._wanted.url} onto the claim "
            f"{self._training.data_claim}: {error.get('message') or ' '.join(last_lines(text, 3))[-500:] or line}",
            remedy=str(error.get("remedy", "Run this again to continue the import.")),
        )

    def _warnings(self) -> list[str]:
        """Return the last warning event about the Job's pods, which have not started."""
        found = [
            (str(event.get("lastTimestamp") or event["metadata"].get("creationTimestamp")), event.get("message", ""))
            for event in self._api.list("v1", "Event", self._training.namespace)
            if event.get("type") == "Warning"
            and str(event["involvedObject"].get("name", "")).startswith(name_of(self._training))
        ]
        return [message for _, message in sorted(found)[-1:]]

    def _lost(self) -> TrainyardError:
        return TrainyardError(
            f"Another call is importing the data of the run {self._training.name}, and that import continues.",
            remedy="Run this again when it has ended. Data that is on the claim by then is not downloaded again.",
        )

    def _remove(self) -> None:
        """Delete the Job and its supporting objects, unless another user has replaced the Job or may be about to."""
        live = self._find()
        if (_uid(live) if live else "") != self._uid:
            return
        for obj in around(self._training, self._wanted):
            self._api.delete(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], self._training.namespace)
        if live:
            self._delete(live)

    def _delete(self, live: Object) -> None:
        meta = live["metadata"]
        self._api.delete(JOB_API, "Job", meta["name"], self._training.namespace, uid=meta.get("uid", ""))
        wait_until(
            self._find,
            lambda found: found is None,
            what=f"the Job {meta['name']} to be gone",
            timeout=GONE_SECONDS,
            interval=0.5,
            show=lambda found: f"{describe(found or {})} still exists",
            clock=self._clock,
        )

    def _find(self) -> Object | None:
        found = self._api.get(JOB_API, "Job", name_of(self._training), self._training.namespace)
        return {"apiVersion": JOB_API, "kind": "Job", **found} if found else None

    def _pods(self) -> list[Object]:
        labels = ",".join(f"{key}={value}" for key, value in pod_labels(self._training).items())
        found = self._api.list("v1", "Pod", self._training.namespace, labels=labels)
        return sorted(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))

    def _log(self, pod: Object) -> str:
        if pod_state(pod)[0] == "waiting":
            return ""
        try:
            return self._api.log(self._training.namespace, pod["metadata"]["name"], tail=50)
        except KubeError as error:
            if error.transient or error.status == 500:
                return ""
            raise


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))


def _hash(obj: Object) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(HASH_ANNOTATION))
