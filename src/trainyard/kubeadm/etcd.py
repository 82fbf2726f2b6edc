"""This host's membership in the etcd of the control plane, through etcd's JSON gateway with kubeadm's certificates.

If the member cannot be removed, kubeadm reset only warns and then deletes its data. A member without data still counts
for the quorum, so a cluster of two members is lost then.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import TrainyardError, WaitError
from ..core.finding import Finding
from ..core.plan import Step
from ..core.waiter import wait_until
from . import kubeadm_program as adm
from .node_api import REQUEST_SECONDS, get_json, opener, trusting

OWN_URL = "https://127.0.0.1:2379"
LEAVE_SECONDS = 120.0
"""kubeadm's own limit for a change of the members (timeouts.etcdAPICall)."""
PODS = "/api/v1/namespaces/kube-system/pods?labelSelector=component%3Detcd"
CLIENT_URL = "kubeadm.kubernetes.io/etcd.advertise-client-urls"


def is_member(host: adm.Host) -> bool:
    """Return whether this host has the keys of a member. It may be one even without a static pod or a database yet."""
    return host.has("pki/etcd/ca.crt") and host.has("pki/apiserver-etcd-client.key")


def addresses(host: adm.Host, own: str) -> list[str]:
    """Return the known client URLs of the other members, from this host's static pod and from the API server."""
    peers = re.findall(r"=(https://[^,\s]+):2380", _flag(host, "initial-cluster"))
    urls = [f"{peer}:2379" for peer in peers]
    for pod in (get_json(host.file("admin.conf"), PODS) or {}).get("items", []) if host.has("admin.conf") else []:
        urls += pod["metadata"].get("annotations", {}).get(CLIENT_URL, "").split(",")
    return sorted({url for url in urls if url and urlsplit(url).hostname != urlsplit(own).hostname})


def peer_url(host: adm.Host, node_ip: str) -> str:
    """Return the peer URL that identifies this host's member; a member has a name only after its first start."""
    return _flag(host, "initial-advertise-peer-urls") or f"https://{f'[{node_ip}]' if ':' in node_ip else node_ip}:2380"


def _flag(host: adm.Host, name: str) -> str:
    found = re.search(rf"--{name}=(\S+)", host.read("manifests/etcd.yaml"))
    return found[1] if found else ""


class Members:
    """The member list of etcd, read from the members at the given URLs."""

    def __init__(self, host: adm.Host, urls: Iterable[str]) -> None:
        self._urls = list(urls)
        context = trusting(host.read("pki/etcd/ca.crt"))
        context.load_cert_chain(host.file("pki/apiserver-etcd-client.crt"), host.file("pki/apiserver-etcd-client.key"))
        self._opener = opener(context)

    def _call(self, url: str, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{url}/v3/cluster/member/{method}", json.dumps(body).encode())  # noqa: S310 - the opener has a TLS context of its own
        with self._opener.open(request, timeout=REQUEST_SECONDS) as response:
            return dict(json.load(response))

    def names(self) -> list[str]:
        """Return the names of all members, or the peer URL of one that never started; empty if none answers."""
        for url in self._urls:
            try:
                members = self._call(url, "list", {"linearizable": False})["members"]
            except (OSError, ValueError, KeyError):
                continue
            return [str(item.get("name") or next(iter(item.get("peerURLs", [])), "?")) for item in members]
        return []

    def with_peer(self, peer: str) -> tuple[str, str]:
        """Return the identifier of the member with this peer URL, and the URL that answered; both may be empty."""
        for url in self._urls:
            try:
                # Without a quorum there is no linearizable answer, but each member still knows the list.
                members = self._call(url, "list", {"linearizable": False})["members"]
            except (OSError, ValueError, KeyError):
                continue
            return next((str(item["ID"]) for item in members if peer in item.get("peerURLs", [])), ""), url
        return "", ""

    def remove(self, url: str, identifier: str) -> None:
        """Ask a member to remove another. Errors are ignored, because the caller checks the list afterwards."""
        try:
            self._call(url, "remove", {"ID": identifier})
        except (OSError, ValueError):
            return


def leave(host: adm.Host, node_ip: str, timeout: float = LEAVE_SECONDS) -> None:
    """Remove this host's member from the cluster, if another member answers.

    :raises TrainyardError: the others still list it after `timeout` seconds.
    """
    peer = peer_url(host, node_ip)
    members = Members(host, addresses(host, peer))

    def still_there() -> str:
        identifier, url = members.with_peer(peer)
        if identifier:
            members.remove(url, identifier)
            identifier, url = members.with_peer(peer)
        return identifier

    try:
        wait_until(still_there, lambda found: not found, what="etcd to remove this member", timeout=timeout)
    except WaitError as error:
        raise TrainyardError(
            f"etcd still counts this host ({peer}) as a member. Without its data, the others may lose their quorum.",
            remedy="Bring the other members back, then run again. To destroy the whole cluster, confirm the reset of "
            "all control plane hosts.",
        ) from error


def member_findings(there: Sequence[str], wanted: Sequence[str]) -> Iterator[Finding]:
    """Yield members that etcd lacks, and members that are not control plane nodes of the site.

    :param there: names of the members; empty if no member answered.
    """
    if not there:
        return
    for name in wanted:
        if name not in there:
            yield Finding(f"etcd member {name}", "missing", "a member")
    for name in there:
        if name not in wanted:
            yield Finding(f"etcd member {name}", "a member", "not a control plane node")


def look_at_members(host: adm.Host, wanted: Sequence[str]) -> list[Finding]:
    """Return `member_findings` as seen by this host's member; empty if it has none."""
    if not (is_member(host) and host.has("manifests/etcd.yaml")):
        return []
    return list(member_findings(Members(host, [OWN_URL]).names(), wanted))


def leave_step(host: adm.Host, node_ip: str) -> Step:
    return Step("Leave the etcd cluster, if it has other members", lambda: leave(host, node_ip))
