"""Build OCI images with `podman build`, and pack code images and data archives without podman.

Images are OCI layouts with recorded digests. The layers are in the bundle's own storage. So a build never touches the
images of other users of this machine.

The project's own code is an image of its own, so that a change does not rebuild the runtime image. Sites serve the data
archives.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from ...oci import code_folder, layout
from ..build_program import run
from ..context import EPOCH, Context
from ..lockfile import Artefact

LAYOUT = "oci"


def image(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Build an image (kind `image`).

    Recipe: `reference` (the vendor's name and tag; "{version}" is the artefact's version), `containerfile` (reference
    to a folder with a Containerfile), `context` (path in the build context -> reference), `arguments`, `base`
    (reference to another image's layout, passed to the Containerfile as the build argument BASE).
    Output: the layout `oci/`, and the facts `reference` and `digest` (of the manifest).
    """
    recipe = artefact.recipe
    program = podman(context)
    work = context.cache / "work" / f"context-{artefact.name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    context.copy(recipe.get("context", {}), work)
    containerfile = context.resolve(recipe["containerfile"]) / "Containerfile"
    tag = f"localhost/trainyard/{artefact.name}:build"
    argv = [*program, "build", "--quiet", "--format=oci", "--layers", f"--timestamp={EPOCH}", "--pull=never"]
    argv += ["--network=none", f"--tag={tag}", f"--file={containerfile}"]
    # RUN steps need these on hosts that cannot raise limits; ordinary hosts have higher ones.
    argv += ["--ulimit=nofile=20000:20000", "--ulimit=nproc=32768:32768"]
    argv += [f"--build-arg={name}={value}" for name, value in recipe.get("arguments", {}).items()]
    if "base" in recipe:
        argv.append(f"--build-arg=BASE={load(program, context.resolve(recipe['base']))}")
    run([*argv, str(work)], timeout=1200)
    layout = out / LAYOUT
    # Layers are compressed here with zstd, which nodes unpack several times faster than gzip.
    run([*program, "push", "--quiet", "--compression-format=zstd", tag, f"oci:{layout}:image"], timeout=900)
    shutil.rmtree(work)
    digest = json.loads((layout / "index.json").read_text(encoding="utf-8"))["manifests"][0]["digest"]
    return {"reference": recipe["reference"].format(version=artefact.version), "digest": digest, "layout": LAYOUT}


def prune(context: Context) -> None:
    """Remove the builds' images from their storage. The layouts contain them, and an image with CUDA takes 13 GB."""
    if (context.cache / "podman").is_dir():
        run([*podman(context), "image", "prune", "--all", "--force"], timeout=300)


def podman(context: Context) -> list[str]:
    """Return the podman command with the bundle's own storage."""
    storage = context.cache / "podman"
    return [
        "podman",
        f"--root={storage}/storage",
        f"--runroot={storage}/run",
        "--runtime=runc",
        "--cgroup-manager=cgroupfs",
    ]


def load(program: list[str], layout: Path) -> str:
    """Import an image's layout into the build's storage and return its image ID."""
    return run([*program, "pull", "--quiet", f"oci:{layout}:image"], timeout=300).stdout.strip().splitlines()[-1]


def code(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Pack a folder (kind `code`), like the module `code_image` does for a user's folder.

    Recipe: `reference` (as in `image`), `folder` (reference to a folder, packed without tests, documentation and the
    files that its `.trainignore` excludes).
    Output and facts: as in `image`.
    """
    work = context.cache / "work" / f"code-{artefact.name}"
    shutil.rmtree(work, ignore_errors=True)
    context.copy({"/": artefact.recipe["folder"]}, work)
    image = layout.pack(work, code_folder.read(work))
    image.write(out / LAYOUT)
    shutil.rmtree(work, ignore_errors=True)
    reference = artefact.recipe["reference"].format(version=artefact.version)
    return {"reference": reference, "digest": image.digest, "layout": LAYOUT}


def archive(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Pack files into a tar (kind `archive`), with the same bytes on all machines; a name with `.gz` compresses it.

    Recipe: `file` (its name), `files` (path in the archive -> reference).
    Facts: `file`, and its `sha256`.
    """
    work = context.cache / "work" / f"archive-{artefact.name}"
    shutil.rmtree(work, ignore_errors=True)
    context.copy(artefact.recipe["files"], work)
    name = artefact.recipe["file"]
    content = layout.tar(work, code_folder.read(work, limit=None, own=True))
    if name.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    (out / name).write_bytes(content)
    shutil.rmtree(work, ignore_errors=True)
    return {"file": name, "sha256": hashlib.sha256(content).hexdigest()}
