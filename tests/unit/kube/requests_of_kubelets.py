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
    extension: x509.ExtensionType | None = None,
) -> bytes:
    """A PKCS #10 request; without any alternative name it has no such extension.

    :param extension: another one besides.
    """
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
    if extension:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def two_lists(shown: str, hidden: str) -> bytes:
    """A request with a list of extensions under Microsoft's identifier, which comes first, and one under the usual one:
    `cryptography` reads the DNS name of the first, Go and OpenSSL that of the second. Written by hand, for no builder
    makes it; `hidden` has to be the longer name, because DER sorts attributes."""
    name = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
         x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{NODE}")]
    )  # fmt: skip
    public = KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    lists = _attribute("060a2b060104018237", "02010e", shown) + _attribute("06092a864886f70d01090e", "", hidden)
    told = _der(0x30, b"\x02\x01\x00" + name.public_bytes() + public + _der(0xA0, lists))
    signature = KEY.sign(told, ec.ECDSA(hashes.SHA256()))
    whole = _der(0x30, told + bytes.fromhex("300a06082a8648ce3d040302") + _der(3, b"\x00" + signature))
    return x509.load_der_x509_csr(whole).public_bytes(serialization.Encoding.PEM)


def _attribute(begin: str, rest: str, name: str) -> bytes:
    """An attribute of this identifier whose extension is the alternative DNS name."""
    names = _der(4, _der(0x30, _der(0x82, name.encode())))
    extensions = _der(0x30, _der(0x30, bytes.fromhex("0603551d11") + names))
    return _der(0x30, bytes.fromhex(begin + rest) + _der(0x31, extensions))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    long = [0x81, size] if size < 256 else [0x82, size >> 8, size & 255]
    return bytes([tag, *([size] if size < 128 else long)]) + content


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
