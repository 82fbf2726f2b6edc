"""Debian's browser with a store of certificates of its own, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

STORE_SECONDS = 60
PROGRAMS = {"chromium": "chromium", "certutil": "libnss3-tools"}
"""What is needed -> the package of Debian that has it."""


def missing() -> list[str]:
    """Packages of Debian that have to be installed first."""
    return [package for program, package in PROGRAMS.items() if not shutil.which(program)]


@contextmanager
def chromium(home: Path, authority: Path) -> Iterator[Browser]:
    """A browser that trusts one authority more than others do.

    :param home: an empty folder, in which it keeps what it keeps.
    :param authority: file with a certificate, PEM; whatever is not signed by it is refused.
    """
    store = home / ".pki" / "nssdb"
    store.mkdir(parents=True)
    for options in (["-N", "--empty-password"], ["-A", "-t", "C,,", "-n", "console", "-i", str(authority)]):
        subprocess.run(["certutil", "-d", f"sql:{store}", *options], check=True, timeout=STORE_SECONDS)
    program, flags, environment = shutil.which("chromium"), ["--disable-gpu"], {**os.environ, "HOME": str(home)}
    if os.geteuid() == 0:
        # Root may not have the browser's own sandbox, and would let it go before everything else of the machine.
        flags.append("--no-sandbox")
        wrapper = home / "chromium"
        wrapper.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice {program} "$@"\n')
        wrapper.chmod(0o755)
        program = str(wrapper)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=flags, env=environment) as browser,
    ):
        yield browser
