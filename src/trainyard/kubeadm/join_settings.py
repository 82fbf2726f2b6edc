"""Settings of a join, and the kubeadm configuration built from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import program as adm


@dataclass(frozen=True)
class JoinSettings:
    """Parameters of a join.

    :param endpoint: HOST:PORT of the API; `ca`: PEM of its CA, empty if not known yet (check mode only).
    :param ca_cert_hash: kubeadm's pin of the CA, `sha256:` and the hex digest of its public key (RFC 7469).
    :param schedulable: join a control plane node without the taint that repels ordinary pods.
    :param timeouts: kubeadm's own limits by name (`Timeouts` of v1beta4), as durations like 4m0s.
    :param token: bootstrap token, secret; `certificate_key`: hex key of the shared certificates, secret.
    :param node_ip: address of the node; `control_plane`: join as a control plane node.
    :param timeout: seconds for the whole join.
    """

    endpoint: str
    ca: str
    node_name: str
    node_ip: str
    ca_cert_hash: str = ""
    token: str = ""
    certificate_key: str = ""
    control_plane: bool = False
    schedulable: bool = False
    timeouts: Mapping[str, str] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    kubelet_extra_args: Mapping[str, str] = field(default_factory=dict)
    cri_socket: str = "unix:///run/containerd/containerd.sock"
    timeout: float = 300
    host: adm.Host = field(default_factory=adm.Host)


def join_configuration(settings: JoinSettings) -> dict[str, Any]:
    """Return kubeadm's JoinConfiguration (v1beta4). It contains the token: never print it."""
    extra = {"node-ip": settings.node_ip, **settings.kubelet_extra_args}
    document: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": settings.endpoint,
                "token": settings.token,
                "caCertHashes": [settings.ca_cert_hash],
            }
        },
        "nodeRegistration": {
            "name": settings.node_name,
            "criSocket": settings.cri_socket,
            "imagePullSerial": False,
            "kubeletExtraArgs": [{"name": name, "value": value} for name, value in extra.items() if value],
        },
        "timeouts": {"discovery": "60s", "tlsBootstrap": "120s", **settings.timeouts},
    }
    if settings.schedulable:
        document["nodeRegistration"]["taints"] = []
    if settings.control_plane:
        document["controlPlane"] = {
            "localAPIEndpoint": {"advertiseAddress": settings.node_ip},
            "certificateKey": settings.certificate_key,
        }
    return document
