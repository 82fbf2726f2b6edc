"""Builders for plain files: Python wheels, a data set from npm, C programs, a root file system, a C library.

The shared C library replaces a vendor's: it has all functions that the vendor's header declares.
"""

from __future__ import annotations

import base64
import glob
import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

from ...core.errors import TrainyardError
from ..build_program import run
from ..context import EPOCH, Context
from ..lockfile import Artefact
from ..vendor import http as fetch
from .deb import ARCHITECTURE, KEYRINGS, drift, sources

NPM_LIMIT = 1 << 30
"""Largest package in bytes."""


def wheels(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Download wheels (kind `python_wheels`), each checked against the hash in the requirements file.

    Recipe: `requirements` (reference), `python` ("3.13"), `platforms`.
    """
    recipe = artefact.recipe
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest", str(out)]
    argv += ["--only-binary=:all:", "--implementation", "cp", "--python-version", recipe["python"]]
    argv += [f"--platform={platform}" for platform in recipe["platforms"]]
    argv += ["--cache-dir", str(context.cache / "pip"), "-r", str(context.resolve(recipe["requirements"]))]
    run(argv, timeout=1200)
    return {}


def npm_files(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Extract files from an npm package (kind `npm_files`).

    Recipe: `package`, `integrity` (npm's sha512 of the archive), `files` (destination -> path in the package).
    """
    recipe = artefact.recipe
    archive = _npm_archive(recipe["package"], artefact.version, out)
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()}"
    if integrity != recipe["integrity"]:
        raise TrainyardError(
            f"The npm package {recipe['package']} {artefact.version} has the integrity {integrity}, "
            f"but the lock has {recipe['integrity']}.",
            remedy="Do not use this download: either the lock or the registry has been altered.",
        )
    with tarfile.open(archive) as stream:
        for destination, source in recipe["files"].items():
            member = stream.extractfile(f"package/{source}")
            if member is None:
                raise TrainyardError(f"The npm package {recipe['package']} has no file {source}.")
            (out / destination).write_bytes(member.read())
    archive.unlink()
    return {}


def _npm_archive(package: str, version: str, out: Path) -> Path:
    """Download a package with npm and its configured registry; without npm, from `NPM_CONFIG_REGISTRY`."""
    if shutil.which("npm"):
        argv = ["npm", "pack", "--json", "--silent", f"--pack-destination={out}", f"{package}@{version}"]
        return out / str(json.loads(run(argv, timeout=600, cwd=str(out)).stdout)[0]["filename"])
    registry = os.environ.get("NPM_CONFIG_REGISTRY", "").rstrip("/")
    if not registry:
        raise TrainyardError("npm is not installed.", remedy="Install npm, or set NPM_CONFIG_REGISTRY to a registry.")
    archive = out / "package.tgz"
    archive.write_bytes(
        fetch.read(f"{registry}/{package}/-/{package.rpartition('/')[2]}-{version}.tgz", limit=NPM_LIMIT)
    )
    return archive


def c_program(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Compile a static program from one C file (kind `c_program`), with `VERSION` defined.

    Recipe: `source` (reference), `program`.
    """
    argv = ["gcc", "-Os", "-static", "-s", "-Wall", "-Werror", f'-DVERSION="{artefact.version}"']
    argv += ["-o", str(out / artefact.recipe["program"])]
    run([*argv, str(context.resolve(artefact.recipe["source"]))], timeout=120)
    return {}


def rootfs(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Build a minimal Debian root file system (kind `rootfs`) as `rootfs.tar`; facts as in `deb.closure`.

    Recipe: `suites` (the first one is the release), `packages`.
    """
    recipe = artefact.recipe
    keyrings = [f"--keyring={path}" for path in sorted(glob.glob(KEYRINGS))]
    argv = ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--architectures={ARCHITECTURE}", *keyrings]
    argv += [f"--include={','.join(recipe['packages'])}", '--aptopt=Acquire::Retries "3"']
    argv += ["--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*"]
    argv += ["--dpkgopt=path-exclude=/usr/share/locale/*"]
    argv += [recipe["suites"][0], str(out / "rootfs.tar"), *sources(recipe["suites"], ["main"], context.debian_mirror)]
    temporary = context.cache / "work" / f"tmp-{artefact.name}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    run(argv, timeout=900, env={"SOURCE_DATE_EPOCH": str(EPOCH), "TMPDIR": str(temporary)})
    shutil.rmtree(temporary, ignore_errors=True)
    with tarfile.open(out / "rootfs.tar") as stream:
        status = stream.extractfile("./var/lib/dpkg/status")
        text = status.read().decode() if status else ""
    packages = re.findall(r"^Package: (\S+)\n(?:.+\n)*?Version: (\S+)$", text, re.MULTILINE)
    resolved = {name: {"version": version} for name, version in packages}
    return {"packages": len(resolved), "resolved": resolved, "drift": drift(context, artefact, resolved)}


COMPILER = ["gcc", "-O2", "-s", "-Wall", "-Werror", "-Wno-deprecated-declarations"]
TIMEOUT = 120
"""Seconds for one file."""


def c_library(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Compile a library, and programs that use it (kind `c_library`).

    Functions that the header declares and the source does not define are added; they return `missing_result`.
    Otherwise programs with lazy binding would exit at the first call of one.

    Recipe: `header` (reference), `declares` (pattern whose first group is a declared function's name),
    `missing_result` (int), `source` (reference), `library` (file), `soname`, `programs` (name -> reference), `files`
    (name -> reference; copied).

    :raises TrainyardError: the pattern finds no function in the header.
    """
    recipe = artefact.recipe
    header = context.resolve(recipe["header"])
    names = declared(header.read_text(encoding="utf-8"), recipe["declares"])
    if not names:
        raise TrainyardError(f"The header of {artefact.name} declares no function that {recipe['declares']!r} finds.")
    others = out / "others.c"
    others.write_text(missing(names, recipe["missing_result"]), encoding="ascii")
    path = out / recipe["library"]
    shared = ["-fPIC", "-shared", f"-Wl,-soname,{recipe['soname']}", "-ldl"]
    include = f"-I{header.parent}"
    run(
        [*COMPILER, include, str(context.resolve(recipe["source"])), str(others), *shared, "-o", str(path)],
        timeout=TIMEOUT,
    )
    others.unlink()
    for name, source in recipe.get("programs", {}).items():
        run([*COMPILER, include, str(context.resolve(source)), str(path), "-o", str(out / name)], timeout=TIMEOUT)
    context.copy(recipe.get("files", {}), out)
    return {"functions": len(names)}


def declared(header: str, pattern: str) -> list[str]:
    """Return the names of the functions that a header declares."""
    return sorted(set(re.findall(pattern, header)))


def missing(names: list[str], result: int) -> str:
    """Return C code with a weak function for each name, which a definition elsewhere overrides."""
    lines = [f"__attribute__((weak)) int {name}(void) {{ return {result}; }}" for name in names]
    return "\n".join([*lines, ""])
