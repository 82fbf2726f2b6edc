"""Doors that an object opens, except rights: a table of kinds, each with the reason."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..core.untrusted import at, items, line, mapping
from ..kube.api import Object

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
