"""Cluster membership of a host: compare the cluster in its own files with that of the inventory.

A host's files are untrusted. They are read without a YAML parser, which hosts need not have, and only fingerprints and
cleaned texts leave this module.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.untrusted import line
from .facts import CRI
from .ownership import MARKER
from .preflight_checks import Reason, reason

KUBECONFIGS = (
    "etc/kubernetes/kubelet.conf",
    "etc/kubernetes/admin.conf",
    "var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "var/lib/rancher/k3s/agent/kubelet.kubeconfig",
)
"""Credentials of a host for a cluster: kubeadm nodes, a control plane host that has lost that file, RKE2 and k3s."""
CA = "etc/kubernetes/pki/ca.crt"
RECORD = "var/lib/trainyard/kubeadm"
MADE = ("init.yaml", "init.complete", "init.started")
"""Files in the record that show that this project created a cluster on this host (`kubeadm.program.Host`)."""
JOINED = (f"{RECORD}/join.started", f"{RECORD}/join.complete")

LARGEST = 1 << 20
"""Most bytes of a file that are read; a kubeconfig has a few thousand."""
_SETTING = r"""(?<![\w-])%s["']?[ \t]*:[ \t]*["']?([^\s"',}]+)"""
"""Matches a setting in YAML or JSON, on one line as all programs write it."""
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")


@dataclass(frozen=True)
class Cluster:
    """A cluster as described by a kubeconfig.

    :param source: path of the kubeconfig; `name` and `server` are only for messages.
    :param cas: SHA-256 of the certificate authorities that it trusts.
    """

    source: str
    name: str = ""
    server: str = ""
    cas: frozenset[str] = frozenset()

    def __str__(self) -> str:
        shown = " and ".join(sorted(digest[:16] for digest in self.cas))
        return f"{self.name or 'without a name'} at {self.server or 'no address'} (CA {shown or 'unknown'})"


@dataclass(frozen=True)
class Membership:
    """The cluster membership that a host's files show.

    :param made: this project created a cluster here, or started to; `known`: it has changed this host in any way.
    :param servers: addresses in all kubeconfigs; a control plane's kubelet may use its local API server.
    """

    cluster: Cluster
    made: bool = False
    known: bool = False
    servers: frozenset[str] = frozenset()


def of_site(given: Mapping[str, str]) -> Cluster:
    """Return the inventory's cluster from the module's option: kubeconfig, name, server, ca."""
    return Cluster(given["kubeconfig"], given["name"], given["server"], frozenset(fingerprints(given["ca"])))


def as_dict(found: Membership | None) -> dict[str, Any]:
    """Return a membership as JSON types; empty for a host that belongs to no cluster."""
    if found is None:
        return {}
    cluster = found.cluster
    names = {"source": cluster.source, "name": cluster.name, "server": cluster.server, "cas": sorted(cluster.cas)}
    return {**names, "made": found.made, "known": found.known}


def look(root: str = "/") -> Membership | None:
    """Return the cluster membership of a host; None if it belongs to no cluster."""
    for name in KUBECONFIGS:
        path = os.path.join(root, name)
        if not os.path.exists(path):
            continue
        text = _read(path)
        authorities = [base64_text(each) for each in _all(text, "certificate-authority-data")]
        authorities += [_read(_beside(root, path, each)) for each in _all(text, "certificate-authority")]
        # When an authority is renewed under the same key, this file changes before the kubeconfig.
        authorities.append(_read(os.path.join(root, CA)) if name.startswith("etc/") else "")
        _, _, clusters = text.partition("clusters")
        cluster = Cluster(
            f"/{name}",
            name=line(next(_all(clusters, "name"), ""), 80),
            server=line(next(_all(text, "server"), ""), 200),
            cas=frozenset(digest for each in authorities for digest in fingerprints(each)),
        )
        made = any(os.path.exists(os.path.join(root, RECORD, each)) for each in MADE)
        servers = frozenset(
            server for each in KUBECONFIGS for server in _all(_read(os.path.join(root, each)), "server")
        )
        return Membership(cluster, made, is_known(root), servers)
    return None


def problems(found: Membership | None, site: Cluster) -> list[Reason]:
    """Return why a host must be refused: it is a node of another cluster, or possibly so.

    :param site: the cluster of the inventory; without authorities if the controller has no kubeconfig of it.
    """
    if found is None or found.cluster.cas & site.cas:
        return []
    there = {"found": found.cluster, "source": found.cluster.source, "kubeconfig": site.source}
    if not site.cas and not found.known:
        return [reason("unproven_cluster", **there)]
    # Without an authority, later roles check the state that this project created itself.
    if not site.cas or (not found.cluster.cas and found.known):
        return []
    # The run that recreated the cluster was interrupted, or used another controller. The kubeconfig is fetched again.
    if found.made and site.server in found.servers:
        return []
    again = "reset this host (reset.yml): nothing else is needed"
    if found.made:
        again = f"move {site.source} away on the controller: the next run fetches it again"
    return [reason("other_cluster", site=site, again=again, **there)]


def is_known(root: str = "/") -> bool:
    """Return whether this project has changed a host before, which may be reset since."""
    records = (*(os.path.join(RECORD, each) for each in MADE), *JOINED)
    return any(os.path.exists(os.path.join(root, each)) for each in records) or MARKER in _read(os.path.join(root, CRI))


def fingerprints(pem: str) -> Iterator[str]:
    """Yield the SHA-256 of each certificate in a PEM text."""
    for body in _PEM.findall(pem):
        try:
            yield hashlib.sha256(binascii.a2b_base64(body)).hexdigest()
        except ValueError:
            continue


def base64_text(value: str) -> str:
    """Decode base64 text; empty if it is invalid."""
    try:
        return base64.b64decode(value, validate=True).decode("ascii", "replace")
    except ValueError:
        return ""


def _all(text: str, key: str) -> Iterator[str]:
    return (match[1] for match in re.finditer(_SETTING % key, text))


def _beside(root: str, kubeconfig: str, name: str) -> str:
    """Return the path of a file that a kubeconfig references, possibly relative to itself."""
    return os.path.join(root, name.lstrip("/")) if name.startswith("/") else os.path.join(kubeconfig, "..", name)


def _read(path: str) -> str:
    """Return the text of a regular file, truncated if it is too long; empty if it cannot be read."""
    try:
        # O_NONBLOCK: opening a named pipe would otherwise block for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return stream.read(LARGEST).decode("utf-8", "replace")
