"""Read a cluster, and find everything in it that does not belong to the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.finding import Finding
from ..kube.api import Object
from ..kube.reads import Get, Reader, Unread, listing, must, objects, path
from .foreign import World, door_findings, right_findings, world
from .nodes import node_findings
from .rendered import Rendered
from .settings import MAPS, settings_findings


@dataclass(frozen=True)
class Snapshot:
    """The state of the API server.

    :param nodes: Node objects.
    :param world: objects that may be a right or a door.
    :param settings: kind of kubeadm's documents -> the text in its ConfigMap; None if it is missing.
    """

    nodes: Sequence[Object] = ()
    world: World = field(default_factory=World)
    settings: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """The intended state of a site.

    :param nodes: names of its nodes; `control_plane` has those of its control plane.
    :param documents: of the kubeadm configuration that the inventory renders; empty to skip the comparison.
    :param system: namespaces of the system.
    :param rendered: the record of rendered objects; None to skip rights and doors.
    """

    nodes: Sequence[str]
    control_plane: Sequence[str]
    documents: Sequence[Mapping[str, Any]] = ()
    system: Sequence[str] = ("kube-system",)
    rendered: Rendered | None = None


def snapshot() -> Reader[Snapshot]:
    """Read the cluster.

    :raises KubeError: something cannot be read.
    """
    maps = [Get(path("v1", "configmaps", "kube-system", name)) for name, _ in MAPS.values()]
    nodes, *answers = yield (listing("v1", "nodes"), *maps)
    texts = {kind: _text(answer, key) for (kind, (_, key)), answer in zip(MAPS.items(), answers, strict=True)}
    return Snapshot(must(objects(nodes)), (yield from world()), texts)


def _text(answer: Any, key: str) -> str | None:
    if isinstance(answer, Unread) and answer.absent:
        return None
    text = (must(answer).get("data") or {}).get(key)
    return None if text is None else str(text)


def cluster_findings(seen: Snapshot, site: Site) -> list[Finding]:
    """Return all differences from the site that no role repairs, including objects that do not belong to it."""
    found = list(node_findings(seen.nodes, site.nodes, site.control_plane))
    if site.rendered is not None:
        found += right_findings(seen.world, site.rendered, site.system)
        found += door_findings(seen.world, site.rendered, site.control_plane)
    for document in site.documents:
        kind = str(document.get("kind"))
        if kind in MAPS:
            found += settings_findings(kind, _parsed(seen.settings.get(kind)), document)
    return found


def _parsed(text: str | None) -> Mapping[str, Any] | None:
    """Return the settings in a ConfigMap; None without valid YAML."""
    import yaml

    try:
        found = yaml.safe_load(text) if text is not None else None
    except yaml.YAMLError:
        found = None
    return found if isinstance(found, Mapping) else None
