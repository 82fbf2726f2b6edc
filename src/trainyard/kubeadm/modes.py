"""Who may read what kubeadm and the kubelet keep on a host."""

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
"""Of a certificate, which is no secret but must not be written by others."""

KUBELET_PKI = "/var/lib/kubelet/pki"


def wanted_modes(host: adm.Host, kubelet_pki: str = KUBELET_PKI) -> list[tuple[str, int]]:
    """Patterns of paths, and the widest mode that each may have: those with which kubeadm and the kubelet write."""
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
    """The steps that take from others what they may not; a narrower mode is left alone.

    :param wanted: pattern -> the widest mode; links are passed over.
    :param owner: number of the user whose they are.
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
            steps.append(Step(f"Leave {path} to its owner", partial(_narrow, path, mode & most, owner)))
    return Plan(steps, before, after)


def _told(mode: int, uid: int, owner: int) -> str:
    return f"{mode:04o}" + (f" of user {uid}" if uid != owner else "")


def _narrow(path: str, mode: int, owner: int) -> None:
    os.chmod(path, mode)
    os.chown(path, owner, -1)
