"""Find changed static pods, and certificates of a host that expire soon.

The code compares static pods with kubeadm's output as text, so that hosts need no YAML parser. It reads certificates
with openssl, part of each host with a CA store.
"""

from __future__ import annotations

import base64
import difflib
import glob
import os
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..core.command import run
from ..core.errors import CommandError
from ..core.finding import Finding
from ..core.new_clusters import lines_as_made
from . import kubeadm_program as adm
from .node_api import SECRETS_DIR

PHASES = (["control-plane", "all"], ["etcd", "local"])
OF_THE_JOIN = re.compile(r"\s+- --initial-cluster(-state)?=.*")
"""Flags of etcd that describe the members at its first start, and have no effect afterwards."""

TIMEOUT = 60.0
MEASURE = 120


def rendered(documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the static pod manifests that kubeadm would write, by pod name. Only a temporary folder is written.

    :param documents: the kubeadm configuration of this host.
    :raises CommandError: kubeadm refuses the configuration.
    """
    with adm.configuration(*documents) as path, tempfile.TemporaryDirectory(dir=SECRETS_DIR) as folder:
        for phase in PHASES:
            command = ["kubeadm", "init", "phase", *phase, "--config", path, "--dry-run"]
            run(command, timeout=TIMEOUT, env={"KUBEADM_INIT_DRYRUN_DIR": folder})
        return {name: _read(os.path.join(folder, f"{name}.yaml")) for name in adm.STATIC_PODS}


def unknown_pods(host: adm.Host) -> Iterator[Finding]:
    """Yield static pod files that kubeadm did not write."""
    for path in sorted(glob.glob(host.file("manifests/*"))):
        if os.path.basename(path) not in {f"{name}.yaml" for name in adm.STATIC_PODS}:
            yield Finding(path, "there", "not kubeadm's")


def changed_pods(host: adm.Host, documents: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield control plane static pods that differ from kubeadm's output; nothing before a host has any."""
    if not host.static_pods() or not adm.installed() or adm.STARTED in (host.marker("init"), host.marker("join")):
        return
    try:
        wanted = rendered(documents)
    except CommandError as error:
        yield Finding(host.file("manifests"), f"cannot be compared: {error.message[:MEASURE]}", "as kubeadm writes it")
        return
    for name, text in wanted.items():
        path = f"manifests/{name}.yaml"
        if not host.has(path):
            yield Finding(host.file(path), "missing", "as kubeadm writes it")
        elif difference := changed_lines(there := host.read(path), lines_as_made(text, there)):
            yield Finding(host.file(path), *difference)


def changed_lines(there: str, wanted: str) -> tuple[str, str] | None:
    """Return the differing lines of each side, truncated; None if there is no difference."""
    old, new = ([line for line in text.splitlines() if not OF_THE_JOIN.fullmatch(line)] for text in (there, wanted))
    if old == new:
        return None
    lines = [line for line in difflib.ndiff(old, new) if line[0] in "-+"]
    sides = ["; ".join(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+"]
    return (_short(sides[0]) or "lines are missing", _short(sides[1]) or "without these lines")


def _short(text: str) -> str:
    return text if len(text) <= MEASURE else text[: MEASURE - 1] + "…"


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()


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
OPENSSL_TIMEOUT = 20.0


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
        pem = certificate_of(_read_certificate(path))
        life = dates(pem) if pem else None
        if life is None:
            continue
        left = life[1] - now
        if left < min(days * DAY, (life[1] - life[0]) * PART):
            term = "has expired" if left < 0 else f"expires in {left / DAY:.0f} days"
            yield Finding(f"certificate {path}", term, f"valid for {days:.0f} days or more")


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
        shown = run(["openssl", "x509", "-noout", "-dates"], timeout=OPENSSL_TIMEOUT, stdin=pem).stdout
    except CommandError:
        return None
    found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return ssl.cert_time_to_seconds(found["notBefore"]), ssl.cert_time_to_seconds(found["notAfter"])


def _read_certificate(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
