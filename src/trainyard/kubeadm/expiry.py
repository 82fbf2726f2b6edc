"""Find certificates of a host that expire soon. They are read with openssl, part of each host with a CA store."""

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
"""A certificate whose lifetime is less than ten times the bound is reported in the last tenth of its lifetime."""

EMBEDDED = re.compile(r"^\s*client-certificate-data: *([A-Za-z0-9+/=]+)\s*$", re.MULTILINE)
TIMEOUT = 20.0


def ending(
    patterns: Sequence[str], days: float, now: float, dates: Callable[[bytes], tuple[float, float] | None]
) -> Iterator[Finding]:
    """Yield certificates that have expired or expire within a bound.

    :param patterns: patterns of PEM files, or of kubeconfigs with an embedded certificate; other files are skipped.
    :param days: the bound in days.
    :param now: seconds since the epoch.
    :param dates: PEM -> start and expiry, in seconds since the epoch; `None` if it is not a certificate.
    """
    for path in sorted({path for pattern in patterns for path in glob.glob(pattern)}):
        pem = certificate_of(_read(path))
        life = dates(pem) if pem else None
        if life is None:
            continue
        left = life[1] - now
        if left < min(days * DAY, (life[1] - life[0]) * PART):
            told = "has expired" if left < 0 else f"expires in {left / DAY:.0f} days"
            yield Finding(f"certificate {path}", told, f"valid for {days:.0f} days or more")


def certificate_of(text: bytes) -> bytes:
    """Return the first certificate in a file, or the one embedded in a kubeconfig; empty if there is none."""
    begin = text.find(b"-----BEGIN CERTIFICATE-----")
    if begin >= 0:
        return text[begin:]
    found = EMBEDDED.search(text.decode(errors="replace"))
    try:
        return base64.b64decode(found[1], validate=True) if found else b""
    except ValueError:
        return b""


def dates_of(pem: bytes) -> tuple[float, float] | None:
    """Return a certificate's start and expiry, in seconds since the epoch; None if openssl cannot read it."""
    try:
        shown = run(["openssl", "x509", "-noout", "-dates"], timeout=TIMEOUT, stdin=pem).stdout
    except CommandError:
        return None
    found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return ssl.cert_time_to_seconds(found["notBefore"]), ssl.cert_time_to_seconds(found["notAfter"])


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
