"""Calls to the container engine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from ..core.command import run
from . import host

TIMEOUT = 120
"""Seconds for one call; creating a container from a 300 MB image takes about one."""


def missing(*more: str) -> list[str]:
    """Return the required programs that are not installed; check mode may run before their installation.

    :param more: additional programs.
    """
    return [program for program in ("podman", "nft", "ip", *more) if not shutil.which(program)]


def podman(
    *arguments: str, ok: Sequence[int] = (0,), stdin: bytes | None = None, timeout: float = TIMEOUT
) -> subprocess.CompletedProcess[str]:
    """Run podman with the OCI runtime that this machine needs."""
    runtime = host.detect().runtime
    selected = [f"--runtime={runtime}"] if runtime else []
    return run(["podman", *selected, *arguments], timeout=timeout, ok=ok, stdin=stdin)
