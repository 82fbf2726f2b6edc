"""Which requests for a kubelet's serving certificate are those of the inventory's hosts."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.unit.kube.requests_of_kubelets import pem, request, two_lists
from trainyard.kube.certificate_requests import KubeletHost, node_of, pending, refusal

HOSTS = {
    "worker1": KubeletHost.of(["worker1"], ["10.1.0.21"]),
    "worker2": KubeletHost.of(["worker2"], ["10.1.0.22", "fd00::22"]),
    "unknown": KubeletHost.of(["unknown"], ["", "unknown.example.org"]),
}


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request(usages=["server auth", "digital signature", "key encipherment"]),
        request(groups=["system:authenticated", "system:nodes"]),
        request(body=pem(names=())),
        request(body=pem(addresses=())),
        request(body=pem(names=("WORKER1",))),
    ],
)
def test_what_the_inventory_vouches_for(asked: dict[str, Any]) -> None:
    assert refusal(asked, HOSTS) == ""


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (request(signerName="kubernetes.io/kube-apiserver-client"), "it is for the signer kubernetes.io/kube-apis"),
        (request(username="system:node:stranger"), "its user system:node:stranger is not a host of the inventory"),
        (request(username="alice"), "its user alice is not a host of the inventory"),
        (request(username=""), "its user (none) is not a host"),
        (request(groups=["system:nodes", "system:authenticated", "system:masters"]), "system:masters"),
        (request(groups=["system:authenticated"]), "its user is in the groups system:authenticated"),
        (request(usages=["digital signature", "server auth", "client auth"]), "it is for the usages client auth"),
        (request(usages=["server auth"]), "it is for the usages server auth"),
        (request(request="no base64!"), "it cannot be read"),
        (request(request=base64.b64encode(b"no request").decode()), "it cannot be read"),
        # The user is worker2's, the subject worker1's.
        (request(username="system:node:worker2"), "its subject is commonName=system:node:worker1"),
        (
            request(body=pem(subject=[(NameOID.COMMON_NAME, "system:node:worker1")])),
            "its subject is commonName=system:node:worker1",
        ),
        (
            request(
                body=pem(
                    subject=[
                        (NameOID.ORGANIZATION_NAME, "system:nodes"),
                        (NameOID.ORGANIZATION_NAME, "system:masters"),
                        (NameOID.COMMON_NAME, "system:node:worker1"),
                    ]
                )
            ),
            "organizationName=system:masters",
        ),
        (request(body=pem(names=(), addresses=())), "it asks for no name and no address"),
        (request(body=pem(names=("worker1", "worker2"))), "it asks for worker2, which the inventory does not give"),
        (request(body=pem(addresses=("10.1.0.21", "10.1.0.22"))), "it asks for 10.1.0.22, which"),
        (request(body=pem(names=("kubernetes.default.svc",))), "it asks for kubernetes.default.svc, which"),
        (request(body=pem(others=[x509.RFC822Name("a@example.org")])), "it asks for names of the kinds RFC822Name"),
        (
            request(body=pem(others=[x509.UniformResourceIdentifier("https://example.org")])),
            "it asks for names of the kinds UniformResourceIdentifier",
        ),
        (request(body=two_lists("worker1", "cp1.example.org")), "no kubelet requests: 1.3.6.1.4.1.311.2.1.14"),
        (
            request(body=pem(extension=x509.BasicConstraints(ca=True, path_length=None))),
            "no kubelet requests: 2.5.29.19",
        ),
    ],
)
def test_what_stays_pending(asked: dict[str, Any], why: str) -> None:
    assert why in refusal(asked, HOSTS)


def test_a_host_without_a_known_address_gets_no_certificate_for_one() -> None:
    body = pem(
        subject=[(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:unknown")],
        names=("unknown",),
        addresses=("10.1.0.99",),
    )
    assert "10.1.0.99" in refusal(request(username="system:node:unknown", body=body), HOSTS)


def test_addresses_are_compared_by_what_they_mean() -> None:
    body = pem(
        subject=[(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:worker2")],
        names=("worker2",),
        addresses=("fd00:0:0:0::22",),
    )
    assert refusal(request(username="system:node:worker2", body=body), HOSTS) == ""


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (request(), True),
        ({**request(), "status": {"conditions": [{"type": "Approved"}]}}, False),
        ({**request(), "status": {"conditions": [{"type": "Denied"}]}}, False),
        (request(signerName="kubernetes.io/kube-apiserver-client-kubelet"), False),
    ],
)
def test_pending(one: dict[str, Any], expected: bool) -> None:
    assert pending(one) is expected


@pytest.mark.parametrize(("user", "node"), [("system:node:worker1", "worker1"), ("alice", ""), ("", "")])
def test_node_of(user: str, node: str) -> None:
    assert node_of(request(username=user)) == node
