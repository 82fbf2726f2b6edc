"""A Python environment with exactly the locked packages, created completely before it replaces the one in use."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..core.command import run
from ..core.errors import TrainyardError
from ..core.plan import Plan, Step

PYTHONS = ("3.11", "3.12", "3.13")
"""Versions of Python for which requirements.txt is locked."""

COMPLETE = "complete"
DOWNLOAD_TIMEOUT = 60.0
"""Seconds without data from the server of the wheels."""


@dataclass(frozen=True)
class Environment:
    """The wanted environment.

    :param path: path of the environment for programs: a link to the real folder next to it.
    :param requirements: text of the list of packages, each with its hashes.
    :param url: address of a tar with wheels (`wheels/NAME.whl`); empty for the Python index.
    :param sha256: of that tar.
    :param python: program that creates the environment.
    :param timeout: seconds for the installation.
    """

    path: Path
    requirements: str
    url: str = ""
    sha256: str = ""
    python: str = "/usr/bin/python3"
    timeout: float = 900.0

    @property
    def folder(self) -> Path:
        return self.path.with_name(f"{self.path.name}s")


def version(environment: Environment) -> str:
    """Return the version of the host's Python, such as "3.13".

    :raises TrainyardError: the host has no Python, or one without locked packages.
    """
    argv = [environment.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    found = run(argv, timeout=20).stdout.strip()
    if found not in PYTHONS:
        raise TrainyardError(
            f"{environment.python} of this host is Python {found}, but packages are locked for {', '.join(PYTHONS)}.",
            remedy="Put a host with Debian 12 or 13, or Ubuntu 24.04, into the group controllers.",
        )
    return found


def make_plan(environment: Environment, found: str, fetch: Callable[[str, Path], object] | None = None) -> Plan:
    """Return the plan to create a new environment if the one in use has other packages or another Python.

    :param found: version of Python from `version`.
    :param fetch: downloads an address to a file.
    """
    name = hashlib.sha256(f"{found}\n{environment.requirements}".encode()).hexdigest()[:16]
    target = environment.folder / name
    present = _present(environment)
    before = {"environment": present}
    if present == name:
        return Plan((), before, before)
    steps = []
    if not (target / COMPLETE).is_file():
        what = f"Create a Python {found} environment of {environment.requirements.count('--hash=sha256:')} locked files"
        steps.append(Step(what, lambda: _make(environment, target, fetch or _download)))
    steps.append(
        Step(f"Use the environment as {environment.path}, and remove others", lambda: _use(environment, target))
    )
    return Plan(steps, before, {"environment": name})


def _present(environment: Environment) -> str:
    """Return the name of the environment in use; empty without a complete one."""
    try:
        target = environment.path.parent / os.readlink(environment.path)
    except OSError:
        return ""
    return target.name if (target / COMPLETE).is_file() else ""


def _make(environment: Environment, target: Path, fetch: Callable[[str, Path], object]) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trainyard-environment-") as work:
        listed = Path(work) / "requirements.txt"
        listed.write_text(environment.requirements, encoding="utf-8")
        source = _wheels(environment, Path(work), fetch) if environment.url else []
        run([environment.python, "-m", "venv", str(target)], timeout=environment.timeout)
        # An index in the configuration of the user or the machine must not replace the wheels.
        isolated = ["--isolated"] if environment.url else []
        argv = [f"{target}/bin/python", "-m", "pip", *isolated, "install", "--quiet", "--disable-pip-version-check"]
        argv += ["--no-cache-dir", "--no-deps", "--only-binary=:all:", "--require-hashes", *source, "-r", str(listed)]
        run(argv, timeout=environment.timeout)
    (target / COMPLETE).touch()
    # The packages must be on the disk before the link makes them visible.
    os.sync()


def _wheels(environment: Environment, work: Path, fetch: Callable[[str, Path], object]) -> list[str]:
    """Fetch and unpack the archive, and return pip's options to use only its wheels."""
    archive = work / "wheels.tar"
    fetch(environment.url, archive)
    with archive.open("rb") as stream:
        found = hashlib.sha256()
        while chunk := stream.read(1 << 20):
            found.update(chunk)
    if found.hexdigest() != environment.sha256:
        raise TrainyardError(
            f"{environment.url} has the SHA-256 {found.hexdigest()}, but {environment.sha256} is expected.",
            remedy="Run playbooks/supply.yml: the archive of the mirror differs from that of the bundle.",
        )
    (work / "wheels").mkdir()
    with tarfile.open(archive) as tar:
        for member in tar:
            name = Path(member.name).name
            content = tar.extractfile(member) if member.isfile() and name.endswith(".whl") else None
            if content:
                with (work / "wheels" / name).open("wb") as out:
                    shutil.copyfileobj(content, out)
    archive.unlink()
    return ["--no-index", f"--find-links={work / 'wheels'}"]


def _use(environment: Environment, target: Path) -> None:
    link = environment.path.with_name(f".{environment.path.name}.new")
    link.unlink(missing_ok=True)
    link.symlink_to(f"{environment.folder.name}/{target.name}")
    os.replace(link, environment.path)
    for other in environment.folder.iterdir():
        if other != target:
            shutil.rmtree(other)


def _download(url: str, target: Path) -> None:
    # The mirror is part of the site, so no proxy is used.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=DOWNLOAD_TIMEOUT) as answer, target.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except OSError as error:
        raise TrainyardError(f"{url} cannot be fetched: {error}.", remedy="Check that the mirror answers.") from error
