"""Pack artefacts without podman: code images and data archives.

The project's own code is an image of its own, so that a change does not rebuild the runtime image. Sites serve the
data archives.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from ...oci import folder, layout
from ..context import Context
from ..lock import Artefact
from .image import LAYOUT


def code(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Pack a folder (kind `code`), like the module `code_image` does for a user's folder.

    Recipe: `reference` (as in `image`), `folder` (reference to a folder, packed without tests, documentation and the
    files that its `.trainignore` excludes).
    Output and facts: as in `image`.
    """
    work = context.cache / "work" / f"code-{artefact.name}"
    shutil.rmtree(work, ignore_errors=True)
    context.copy({"/": artefact.recipe["folder"]}, work)
    image = layout.pack(work, folder.read(work))
    image.write(out / LAYOUT)
    shutil.rmtree(work, ignore_errors=True)
    reference = artefact.recipe["reference"].format(version=artefact.version)
    return {"reference": reference, "digest": image.digest, "layout": LAYOUT}


def archive(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Pack files into a plain tar (kind `archive`), with the same bytes on all machines.

    Recipe: `file` (its name), `files` (path in the archive -> reference).
    Facts: `file`, and its `sha256`.
    """
    work = context.cache / "work" / f"archive-{artefact.name}"
    shutil.rmtree(work, ignore_errors=True)
    context.copy(artefact.recipe["files"], work)
    name = artefact.recipe["file"]
    content = layout.tar(work, folder.read(work, limit=None, own=True))
    (out / name).write_bytes(content)
    shutil.rmtree(work, ignore_errors=True)
    return {"file": name, "sha256": hashlib.sha256(content).hexdigest()}
