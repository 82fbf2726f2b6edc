"""The builders by kind, each with a revision that increases if it produces other bytes from the same recipe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..context import Context
from ..lockfile import Artefact
from . import deb, disk, go, image, plain_files

Builder = Callable[[Artefact, Path, Context], dict[str, Any]]

BUILDERS: dict[str, tuple[int, Builder]] = {
    "go_programs": (1, go.programs),
    "go_module_files": (1, go.module_files),
    "deb": (1, deb.package),
    "debian_packages": (2, deb.closure),
    "apt_repository": (1, deb.repository),
    "python_wheels": (1, plain_files.wheels),
    "npm_files": (1, plain_files.npm_files),
    "c_program": (2, plain_files.c_program),
    "c_library": (1, plain_files.c_library),
    "rootfs": (1, plain_files.rootfs),
    "program_output": (1, disk.output),
    "disk": (1, disk.disk),
    "image": (1, image.image),
    "code": (1, image.code),
    "archive": (1, image.archive),
}

REVISIONS = {kind: revision for kind, (revision, _) in BUILDERS.items()}
