"""What is wrong with a certificate that nobody has been asked to serve: its dates, its names, its authority."""

from __future__ import annotations

import ipaddress
from datetime import datetime


def trouble_of(pem: bytes, authority: bytes, name: str, now: datetime) -> tuple[datetime | None, str]:
    """When a certificate ends, and what is wrong with it as a clause; empty where nothing is.

    :param pem: the certificate, perhaps with its chain.
    :param authority: of the one that has to have signed it, PEM; empty compares nothing.
    :param name: DNS name or address that it has to be for.
    """
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        found, *_ = x509.load_pem_x509_certificates(pem)
    except ValueError:
        return None, "its certificate cannot be read"
    ends = found.not_valid_after_utc
    if now > ends:
        return ends, f"its certificate ended on {ends:%Y-%m-%d}"
    if now < found.not_valid_before_utc:
        return ends, f"its certificate is not valid before {found.not_valid_before_utc:%Y-%m-%d}"
    if not covers(names_of(found), name):
        return ends, f"its certificate is not for {name}"
    if authority:
        try:
            found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        except (InvalidSignature, ValueError, TypeError):
            return ends, "its certificate does not come from its authority"
    return ends, ""


def names_of(certificate: object) -> list[str]:
    """DNS names and addresses of a `cryptography.x509.Certificate`."""
    from cryptography import x509

    assert isinstance(certificate, x509.Certificate)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def covers(names: list[str], name: str) -> bool:
    """Whether one of a certificate's names is this one; `*.` stands for one label (RFC 6125, 6.4.3)."""
    try:
        return str(ipaddress.ip_address(name)) in names
    except ValueError:
        pass
    wanted = name.lower().rstrip(".")
    wild = "*." + wanted.partition(".")[2]
    return any(each.lower() in (wanted, wild) for each in names)
