"""The record of rendered objects, and the entry points (`doors`) that an object opens.

Only objects in the record belong to the site; labels of an object prove nothing. The record is a file on the controller
next to the kubeconfig. A user who can write there has the kubeconfig, too.

Parts: the doors; the record. A table lists the kinds of objects that open doors, each with the reason. Rights are not
doors.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ..core import files
from ..core.errors import TrainyardError
from ..core.flock import locked
from ..core.plan import Plan, Step
from ..core.untrusted import at, items, line, mapping
from ..kube.api import Object, describe
from .rights import Key, key_of, referred, subjects_of, words_of

ANY_PORT = "any port"
"""Replaces the port that the API server chooses if a rendered object names none."""
REMOTE = ("NodePort", "LoadBalancer")
ON_NODE = (
    ("hostPID", "sees its processes"),
    ("hostIPC", "shares its memory"),
    ("hostNetwork", "shares its network"),
)
ORDINARY = (
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
)
"""Capabilities that containerd gives to each container by default. Adding one opens nothing."""
SYSTEM_FOLDERS = (
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr/bin",
    "/usr/lib",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/var/lib/containerd",
    "/var/lib/etcd",
    "/var/lib/kubelet",
    "/var/run",
    "/var/spool/cron",
)
"""Folders of a node whose files run as root, or contain its keys."""
CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def service_doors(service: Object) -> list[str]:
    """Return the ports of a Service on every node, and its external addresses."""
    spec = mapping(service.get("spec"))
    kind, ports = line(spec.get("type")), items(spec.get("ports"))
    found = {f"{kind} {line(at(port, 'nodePort')) or ANY_PORT}" for port in ports if kind in REMOTE}
    found |= {f"port {line(port['nodePort'])}" for port in ports if kind not in REMOTE and at(port, "nodePort")}
    return [*sorted(found), *(f"address {line(each)}" for each in items(spec.get("externalIPs")))]


def node_rights(spec: Any) -> list[str]:
    """Return the rights of a pod on its node, as texts; empty for an ordinary pod.

    :param spec: of the pod.
    """
    rights = [words for name, words in ON_NODE if at(spec, name)]
    containers = [each for kind in CONTAINERS for each in items(at(spec, kind))]
    if any(at(each, "securityContext", "privileged") for each in containers):
        rights.insert(0, "privileged")
    if any(at(volume, "hostPath") is not None for volume in items(at(spec, "volumes"))):
        rights.append("mounts its folders")
    added = {str(name) for each in containers for name in items(at(each, "securityContext", "capabilities", "add"))}
    rights += [f"adds {line(name)}" for name in sorted(added.difference(ORDINARY))]
    # With hostNetwork the API server itself sets hostPort for each port of a container.
    shared = at(spec, "hostNetwork")
    ports = {line(at(port, "hostPort")) for each in containers for port in items(at(each, "ports"))}
    return rights + [f"port {port} of its node" for port in sorted(ports - {"", "0"}) if not shared]


def _pod(pod: Object) -> list[str]:
    return node_rights(pod.get("spec"))


def _template(owner: Object) -> list[str]:
    return node_rights(at(owner, "spec", "template", "spec"))


def _job_template(owner: Object) -> list[str]:
    return node_rights(at(owner, "spec", "jobTemplate", "spec", "template", "spec"))


def _volume(volume: Object) -> list[str]:
    """Return the folder of a PersistentVolume if a pod can take over the node through it.

    Other folders are not doors, as each run creates its own volumes, which are not recorded.
    """
    spec = volume.get("spec")
    paths = (at(spec, kind, "path") for kind in ("hostPath", "local"))
    return [f"is {line(path)} of nodes" for path in paths if isinstance(path, str) and _is_system(path)]


def _is_system(path: str) -> bool:
    """Return whether a folder is a system folder, or is below or above one."""
    found = PurePosixPath("/" + posixpath.normpath(path).lstrip("/"))
    return any(found.is_relative_to(each) or PurePosixPath(each).is_relative_to(found) for each in SYSTEM_FOLDERS)


def _webhooks(configuration: Object) -> list[str]:
    found = {_server(at(each, "clientConfig")) for each in items(configuration.get("webhooks"))}
    return [f"calls {each}" for each in sorted(found)]


def _server(client: Any) -> str:
    service = at(client, "service")
    return line(at(client, "url")) or f"Service {line(at(service, 'namespace'))}/{line(at(service, 'name'))}"


def _policy(policy: Object) -> list[str]:
    return ["changes objects"]


def _api(service: Object) -> list[str]:
    # Without a Service the API server itself serves the API.
    served = at(service, "spec", "service")
    return [f"answered by Service {line(at(served, 'namespace'))}/{line(at(served, 'name'))}"] if served else []


@dataclass(frozen=True)
class Kind:
    """A kind of objects that may be a door.

    :param version: API version of its list; `plural` is its resource.
    :param doors: returns the doors of an object of this kind.
    :param why: reason of a finding, one clause.
    """

    version: str
    plural: str
    doors: Callable[[Object], list[str]]
    why: str


NODE = "a pod with rights on its node can become root there"
ADMISSION = "admissionregistration.k8s.io/v1"
READS = "its server reads, and may change, what is sent to the API server"
KINDS: Mapping[str, Kind] = {
    "Service": Kind("v1", "services", service_doors, "it can be reached from outside, past the site's own doors"),
    "Pod": Kind("v1", "pods", _pod, NODE),
    "ReplicationController": Kind("v1", "replicationcontrollers", _template, NODE),
    "DaemonSet": Kind("apps/v1", "daemonsets", _template, NODE),
    "Deployment": Kind("apps/v1", "deployments", _template, NODE),
    "ReplicaSet": Kind("apps/v1", "replicasets", _template, NODE),
    "StatefulSet": Kind("apps/v1", "statefulsets", _template, NODE),
    "Job": Kind("batch/v1", "jobs", _template, NODE),
    "CronJob": Kind("batch/v1", "cronjobs", _job_template, NODE),
    "PersistentVolume": Kind("v1", "persistentvolumes", _volume, "a pod that claims it can become root on its node"),
    "MutatingWebhookConfiguration": Kind(ADMISSION, "mutatingwebhookconfigurations", _webhooks, READS),
    "ValidatingWebhookConfiguration": Kind(ADMISSION, "validatingwebhookconfigurations", _webhooks, READS),
    "MutatingAdmissionPolicy": Kind(ADMISSION, "mutatingadmissionpolicies", _policy, "it may add rights to every pod"),
    "APIService": Kind("apiregistration.k8s.io/v1", "apiservices", _api, READS),
}


def doors_of(obj: Object) -> list[str]:
    """Return the doors of an object, as texts; empty for other kinds."""
    kind = KINDS.get(str(obj.get("kind")))
    return kind.doors(obj) if kind else []


SCHEMA = 2
SUFFIX = ".rendered.json"
LOCK = ".lock"
SECONDS = 60.0
"""Limit of the wait for another run that writes the record, which takes milliseconds."""
MODE = 0o600
ROLES = ("Role", "ClusterRole")
BINDINGS = ("RoleBinding", "ClusterRoleBinding")


@dataclass(frozen=True)
class Rendered:
    """The objects that runs of this controller have rendered.

    :param parts: names of the recorded parts, as given to `kube_apply`.
    :param objects: `KIND NAMESPACE/NAME` -> recorded data of the object.
    """

    parts: frozenset[str]
    objects: Mapping[str, Mapping[str, Any]]

    def opens(self, obj: Object, owner: Object | None = None) -> list[str]:
        """Return the doors of an object that no run renders.

        :param owner: the object that controls it and was read; None or itself if there is none.
        """
        rendered = items(mapping(self.objects.get(describe(owner or obj))).get("doors"))
        return [each for each in doors_of(obj) if each not in rendered and _chosen(each) not in rendered]

    def binds(self, binding: Object) -> bool:
        """Return whether a run renders this binding with exactly this role and these subjects."""
        return self.objects.get(describe(binding)) == _given(binding)

    def rules(self, role: Key) -> Sequence[Any] | None:
        """Return the rules that a run renders for a role; None for a role that no run renders."""
        kept = self.objects.get(words_of(role))
        return None if kept is None else items(kept.get("rules"))


def _given(binding: Object) -> dict[str, Any]:
    """Return the recorded data of a binding: raw and in lists, in the form that JSON returns."""
    return {"role": [*referred(binding)], "subjects": [[*each] for each in subjects_of(binding)]}


def _chosen(door: str) -> str:
    """Return a door as it was rendered if the API server chose its port."""
    return f"{door.partition(' ')[0]} {ANY_PORT}"


def path_of(kubeconfig: str) -> str:
    """Return the path of the record for the cluster of a kubeconfig."""
    return f"{kubeconfig}{SUFFIX}"


def read(kubeconfig: str) -> Rendered:
    """Return the record; an empty one if it is missing or unreadable."""
    parts = _parts(path_of(kubeconfig))
    return Rendered(frozenset(parts), {name: kept for part in parts.values() for name, kept in part.items()})


def kept_of(objects: Iterable[Object]) -> dict[str, dict[str, Any]]:
    """Return the recorded data of rendered objects: rights and doors, without secrets."""
    found: dict[str, dict[str, Any]] = {}
    for obj in objects:
        kind, name = obj.get("kind"), describe(obj)
        if kind in BINDINGS:
            found[name] = _given(obj)
        elif kind in ROLES:
            meta = obj["metadata"]
            found[words_of(key_of(kind, meta["name"], meta.get("namespace")))] = {"rules": obj.get("rules") or []}
        elif doors := doors_of(obj):
            found[name] = {"doors": doors}
    return dict(sorted(found.items()))


def plan_record(kubeconfig: str, part: str, objects: Sequence[Object], *, more: bool = False) -> Plan:
    """Return the plan to record the rendered objects of a part, empty if the record is up to date.

    :param part: name of the part; its previous record is replaced.
    :param more: whether to keep the previous record of the part, because this call renders only some of its objects.
    :raises TrainyardError: the file cannot be written, on execution of the plan.
    """
    path, kept = path_of(kubeconfig), kept_of(objects)
    parts = _parts(path)
    wanted = _wanted(parts, part, kept, more)
    if parts.get(part) == wanted:
        return Plan()
    subject = f"record of what {part} renders"
    step = Step(f"Write the {subject}: {path}", partial(_write, path, part, kept, more))
    return Plan([step], {subject: sorted(parts[part]) if part in parts else "missing"}, {subject: sorted(wanted)})


def _wanted(parts: Mapping[str, Any], part: str, kept: Mapping[str, Any], more: bool) -> dict[str, Any]:
    return {**(parts.get(part, {}) if more else {}), **kept}


def _write(path: str, part: str, kept: Mapping[str, Any], more: bool) -> None:
    # Two runs may write at the same time. Each reads the other's record under the lock, so no part is lost.
    try:
        Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with locked(Path(f"{path}{LOCK}"), what="another run to write the record", timeout=SECONDS):
            parts = _parts(path)
            parts[part] = _wanted(parts, part, kept, more)
            document = {"schema": SCHEMA, "parts": dict(sorted(parts.items()))}
            files.write(path, json.dumps(document, indent=1) + "\n", MODE)
    except OSError as error:
        raise TrainyardError(f"{path}{LOCK} cannot be written: {error.strerror}.") from error


def _parts(path: str) -> dict[str, dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    if mapping(found).get("schema") != SCHEMA:
        return {}
    return {str(name): dict(mapping(part)) for name, part in mapping(found.get("parts")).items()}


def missing_parts(rendered: Rendered, parts: Iterable[str]) -> list[str]:
    """Return the sorted parts of a site that no run has recorded yet."""
    return sorted(set(parts) - rendered.parts)
