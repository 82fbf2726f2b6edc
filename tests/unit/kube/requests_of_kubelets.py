"""Requests for certificates as kubelets make them, for tests."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEY = ec.generate_private_key(ec.SECP256R1())
NODE = "worker1"


def pem(
    subject: Sequence[tuple[x509.ObjectIdentifier, str]] | None = None,
    names: Sequence[str] = (NODE,),
    addresses: Sequence[str] = ("10.1.0.21",),
    others: Sequence[x509.GeneralName] = (),
) -> bytes:
    """A PKCS #10 request; without any alternative name it has no such extension."""
    subject = subject or [
        (NameOID.ORGANIZATION_NAME, "system:nodes"),
        (NameOID.COMMON_NAME, f"system:node:{NODE}"),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
    )
    alternative: list[x509.GeneralName] = [
        *map(x509.DNSName, names),
        *(x509.IPAddress(ipaddress.ip_address(each)) for each in addresses),
        *others,
    ]
    if alternative:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def request(name: str = "csr-1", *, body: bytes = b"", **changes: Any) -> dict[str, Any]:
    """A CertificateSigningRequest of the kubelet of worker1, with other values of its `spec`."""
    spec = {
        "signerName": "kubernetes.io/kubelet-serving",
        "username": f"system:node:{NODE}",
        "groups": ["system:nodes", "system:authenticated"],
        "usages": ["digital signature", "server auth"],
        "request": base64.b64encode(body or pem()).decode(),
    }
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "resourceVersion": "7"},
        "spec": {**spec, **changes},
        "status": {},
    }
