"""Reading what a cluster has, and everything in it that is not the site's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.finding import Finding
from ..kube.api import Object
from ..kube.reads import Get, Reader, Unread, listing, must, objects, path
from .nodes import node_findings
from .settings import MAPS, settings_findings
from .strangers import binding_findings, pod_findings, service_findings

RBAC = "rbac.authorization.k8s.io/v1"
OWNERS = (
    ("apps/v1", "daemonsets"),
    ("apps/v1", "deployments"),
    ("apps/v1", "replicasets"),
    ("apps/v1", "statefulsets"),
    ("batch/v1", "jobs"),
)


@dataclass(frozen=True)
class Snapshot:
    """What the API server has; every field is a list of objects, but `settings`.

    :param pods: of the system's namespaces; `owners` are what keeps pods, in all of them.
    :param settings: kind of kubeadm's documents -> the text in its ConfigMap; None where there is none.
    """

    nodes: Sequence[Object] = ()
    services: Sequence[Object] = ()
    bindings: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    owners: Sequence[Object] = ()
    settings: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """What the site says.

    :param nodes: names of its nodes; `control_plane` are those of its control plane.
    :param documents: of the kubeadm configuration that the inventory renders; none are not compared.
    """

    nodes: Sequence[str]
    control_plane: Sequence[str]
    documents: Sequence[Mapping[str, Any]] = ()


def snapshot(namespaces: Sequence[str]) -> Reader[Snapshot]:
    """Read the cluster in one go.

    :param namespaces: those of the system's pods.
    :raises KubeError: something cannot be read.
    """
    lists = [listing("v1", "nodes"), listing("v1", "services")]
    lists += [listing(RBAC, "clusterrolebindings"), listing(RBAC, "rolebindings")]
    lists += [listing(version, plural) for version, plural in OWNERS]
    lists += [listing("v1", "pods", namespace) for namespace in namespaces]
    maps = [Get(path("v1", "configmaps", "kube-system", name)) for name, _ in MAPS.values()]
    answers = yield (*lists, *maps)
    found = [must(objects(answer)) for answer in answers[: len(lists)]]
    nodes, services, of_cluster, of_namespaces = found[:4]
    rest = found[4:]
    return Snapshot(
        nodes,
        services,
        [*of_cluster, *of_namespaces],
        pods=[each for pods in rest[len(OWNERS) :] for each in pods],
        owners=[each for owners in rest[: len(OWNERS)] for each in owners],
        settings={
            kind: _text(answer, key)
            for (kind, (_, key)), answer in zip(MAPS.items(), answers[len(lists) :], strict=True)
        },
    )


def _text(answer: Any, key: str) -> str | None:
    if isinstance(answer, Unread) and answer.absent:
        return None
    text = (must(answer).get("data") or {}).get(key)
    return None if text is None else str(text)


def cluster_findings(seen: Snapshot, site: Site) -> list[Finding]:
    """Everything that is not the site's, or not as the site has it, and that no role repairs."""
    found = [
        *node_findings(seen.nodes, site.nodes, site.control_plane),
        *binding_findings(seen.bindings),
        *service_findings(seen.services),
        *pod_findings(seen.pods, seen.owners, site.control_plane),
    ]
    for document in site.documents:
        kind = str(document.get("kind"))
        if kind in MAPS:
            found += settings_findings(kind, _parsed(seen.settings.get(kind)), document)
    return found


def _parsed(text: str | None) -> Mapping[str, Any] | None:
    """The settings in a ConfigMap; what is no YAML counts as none."""
    import yaml

    try:
        found = yaml.safe_load(text) if text is not None else None
    except yaml.YAMLError:
        found = None
    return found if isinstance(found, Mapping) else None
