"""Certificates of a host that end soon, read with openssl, which every host has that has a store of certificates."""

from __future__ import annotations

import base64
import glob
import re
import ssl
from collections.abc import Callable, Iterator, Sequence

from ..core.command import run
from ..core.errors import CommandError
from ..core.finding import Finding

PATTERNS = (
    "/etc/kubernetes/pki/*.crt",
    "/etc/kubernetes/pki/etcd/*.crt",
    "/etc/kubernetes/*.conf",
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/var/lib/kubelet/pki/kubelet-server-current.pem",
)
DAY = 86400.0
PART = 0.1
"""A certificate that lives for less than ten times the bound is told of in the last tenth of its life."""

EMBEDDED = re.compile(r"^\s*client-certificate-data: *([A-Za-z0-9+/=]+)\s*$", re.MULTILINE)
TIMEOUT = 20.0


def ending(
    patterns: Sequence[str], days: float, now: float, dates: Callable[[bytes], tuple[float, float] | None]
) -> Iterator[Finding]:
    """Certificates that end within a bound, or have ended.

    :param patterns: files with a certificate in PEM, or kubeconfigs with one inside; others are passed over.
    :param now: seconds since the epoch.
    :param dates: PEM -> beginning and end, `None` for what is no certificate.
    """
    for path in sorted({path for pattern in patterns for path in glob.glob(pattern)}):
        pem = certificate_of(_read(path))
        life = dates(pem) if pem else None
        if life is None:
            continue
        left = life[1] - now
        if left < min(days * DAY, (life[1] - life[0]) * PART):
            told = "has ended" if left < 0 else f"ends in {left / DAY:.0f} days"
            yield Finding(f"certificate {path}", told, f"{days:.0f} days or more are left")


def certificate_of(text: bytes) -> bytes:
    """The first certificate in a file, or inside a kubeconfig; empty where there is none."""
    begin = text.find(b"-----BEGIN CERTIFICATE-----")
    if begin >= 0:
        return text[begin:]
    found = EMBEDDED.search(text.decode(errors="replace"))
    try:
        return base64.b64decode(found[1], validate=True) if found else b""
    except ValueError:
        return b""


def dates_of(pem: bytes) -> tuple[float, float] | None:
    """When a certificate begins and ends, in seconds since the epoch; None where openssl reads none."""
    try:
        shown = run(["openssl", "x509", "-noout", "-dates"], timeout=TIMEOUT, stdin=pem).stdout
    except CommandError:
        return None
    found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return ssl.cert_time_to_seconds(found["notBefore"]), ssl.cert_time_to_seconds(found["notAfter"])


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
