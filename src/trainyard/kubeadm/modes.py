"""File modes of the files that kubeadm and the kubelet keep on a host."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from functools import partial

from ..core.plan import Plan, Step
from . import program as adm

OWNERS_ALONE = 0o600
READ_BY_ALL = 0o644
"""Mode of a certificate, which is not secret but must not be writable by others."""

KUBELET_PKI = "/var/lib/kubelet/pki"


def wanted_modes(host: adm.Host, kubelet_pki: str = KUBELET_PKI) -> list[tuple[str, int]]:
    """Return path patterns with the widest permitted mode, the one that kubeadm and the kubelet write with."""
    return [
        (host.file("*.conf"), OWNERS_ALONE),
        (host.file("manifests/*.yaml"), OWNERS_ALONE),
        (host.file("pki/*.key"), OWNERS_ALONE),
        (host.file("pki/etcd/*.key"), OWNERS_ALONE),
        (host.file("pki/*.crt"), READ_BY_ALL),
        (host.file("pki/etcd/*.crt"), READ_BY_ALL),
        (os.path.join(kubelet_pki, "*.key"), OWNERS_ALONE),
        (os.path.join(kubelet_pki, "*.pem"), OWNERS_ALONE),
    ]


def plan_modes(wanted: Sequence[tuple[str, int]], owner: int = 0) -> Plan:
    """Plan to narrow modes that are too wide and to correct owners; narrower modes are kept.

    :param wanted: pattern and widest mode; links are skipped.
    :param owner: user ID of the owner.
    """
    steps: list[Step] = []
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for pattern, most in wanted:
        for path in sorted(glob.glob(pattern)):
            seen = os.lstat(path)
            mode = stat.S_IMODE(seen.st_mode)
            if stat.S_ISLNK(seen.st_mode) or (not mode & ~most and seen.st_uid == owner):
                continue
            subject = f"mode of {path}"
            before[subject], after[subject] = _told(mode, seen.st_uid, owner), _told(mode & most, owner, owner)
            steps.append(Step(f"Restrict owner and mode of {path}", partial(_narrow, path, mode & most, owner)))
    return Plan(steps, before, after)


def _told(mode: int, uid: int, owner: int) -> str:
    return f"{mode:04o}" + (f" of user {uid}" if uid != owner else "")


def _narrow(path: str, mode: int, owner: int) -> None:
    os.chmod(path, mode)
    os.chown(path, owner, -1)
