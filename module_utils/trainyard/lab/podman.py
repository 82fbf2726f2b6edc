"""Calls of the container engine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from ..core.command import run
from . import host

TIMEOUT = 120
"""Seconds for one call; creating a container from a 300 MB image takes about one."""


def installed() -> bool:
    """Whether the programs that carry a lab are there; a check run may come before they are installed."""
    return all(shutil.which(program) for program in ("podman", "nft", "ip"))


def podman(
    *arguments: str, ok: Sequence[int] = (0,), stdin: bytes | None = None, timeout: float = TIMEOUT
) -> subprocess.CompletedProcess[str]:
    """Run podman with the OCI runtime that this machine needs."""
    runtime = host.detect().runtime
    selected = [f"--runtime={runtime}"] if runtime else []
    return run(["podman", *selected, *arguments], timeout=timeout, ok=ok, stdin=stdin)
