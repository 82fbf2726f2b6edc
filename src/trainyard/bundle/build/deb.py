"""Debian packages: packages built here, packages with dependencies from Debian's archive, and a repository of both."""

from __future__ import annotations

import glob
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..apt import ARCHITECTURE, PrivateApt
from ..artefact_store import sha256
from ..build_program import run
from ..context import EPOCH, Context
from ..lockfile import Artefact

KEYRINGS = "/usr/share/keyrings/debian-archive-*.gpg"


def package(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Build one package (kind `deb`) with the vendor's name and layout.

    Recipe: `package`, `files` (path on the host -> reference; programs get mode 0755), `control` (fields except
    Package, Version, Architecture, Maintainer), `maintainer_scripts` (reference to a folder of DEBIAN files).
    """
    recipe = artefact.recipe
    root = out / "root"
    context.copy(recipe["files"], root)
    for file in root.rglob("*"):
        executable = file.is_file() and file.parent.name in ("bin", "sbin")
        file.chmod(0o755 if file.is_dir() or executable else 0o644)
    root.chmod(0o755)
    fields = {
        "Package": recipe["package"],
        "Version": artefact.version,
        "Architecture": ARCHITECTURE,
        "Maintainer": "trainyard <trainyard@example.invalid>",
        **recipe.get("control", {}),
    }
    debian = root / "DEBIAN"
    debian.mkdir()
    (debian / "control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()), encoding="utf-8")
    if recipe.get("maintainer_scripts"):
        for script in sorted(context.resolve(recipe["maintainer_scripts"]).iterdir()):
            shutil.copyfile(script, debian / script.name)
            (debian / script.name).chmod(0o644 if script.name == "conffiles" else 0o755)
    name = f"{recipe['package']}_{artefact.version}_{ARCHITECTURE}.deb"
    # zstd at a low level: the repository is one hop away, so unpacking speed matters more than size.
    argv = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z3", "--build", str(root), str(out / name)]
    run(argv, timeout=300, env={"SOURCE_DATE_EPOCH": str(EPOCH)})
    shutil.rmtree(root)
    return {"deb": name}


def sources(suites: Sequence[str], components: Sequence[str], mirror: str, options: str = "") -> list[str]:
    """Return lines for an apt sources.list, one per suite. Security updates are in a separate archive.

    :param mirror: base URL of a Debian archive.
    :param options: options of each line, such as "[signed-by=PATH] ".
    """
    archives = {suite: mirror.rstrip("/") + ("-security" if suite.endswith("-security") else "") for suite in suites}
    return [f"deb {options}{url} {suite} {' '.join(components)}" for suite, url in archives.items()]


def closure(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Download packages with their dependencies from Debian's archive (kind `debian_packages`).

    apt resolves them as on a host without packages. The archive's signed index authenticates all files. The archive
    has only the newest version of a package, so the same recipe may later give newer packages. The fact `resolved`
    records the versions, and `drift` the changes since the previous artefact.
    Recipe: `suites`, `components`, `packages`.
    """
    recipe = artefact.recipe
    root = context.cache / "work" / f"apt-{artefact.name}"
    shutil.rmtree(root, ignore_errors=True)
    trust = f"[signed-by={','.join(sorted(glob.glob(KEYRINGS)))} target=Packages] "
    lines = sources(recipe["suites"], recipe["components"], context.debian_mirror, trust)
    # Not strict: the archive is the one that this machine's own apt uses, with the same settings.
    apt = PrivateApt(root, lines, is_strict=False)
    apt("apt-get", "--yes", "--download-only", "install", *recipe["packages"], timeout=900)
    resolved: dict[str, dict[str, str]] = {}
    for file in sorted(apt.archives.glob("*.deb")):
        package_name, version, architecture = unquote(file.stem).split("_")
        # File names must not contain the colon of an epoch.
        place = out / f"{package_name}_{version.rpartition(':')[2]}_{architecture}.deb"
        shutil.move(file, place)
        resolved[package_name] = {"version": version, "sha256": sha256(place)}
    shutil.rmtree(root)
    return {"packages": len(resolved), "resolved": resolved, "drift": drift(context, artefact, resolved)}


def drift(context: Context, artefact: Artefact, resolved: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the packages whose version or bytes differ from those in the previous artefact."""
    before: Mapping[str, Mapping[str, str]] = context.previous(artefact.name).get("resolved", {})
    return [
        f"{name} {before[name]['version']} -> {found['version']}"
        for name, found in resolved.items()
        if name in before and before[name] != found
    ]


def repository(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Publish packages as an unsigned apt repository (kind `apt_repository`); each site signs it with its own key.

    Recipe: `suite`, `component`, `packages` (references to artefacts with .deb files).
    Output: `repository.tar` (one file is copied to a host much faster than hundreds) and `Release`, to be signed.
    """
    recipe = artefact.recipe
    aptly = _Aptly(context.cache / "work" / f"aptly-{artefact.name}")
    aptly("repo", "create", f"-distribution={recipe['suite']}", f"-component={recipe['component']}", "site")
    aptly("repo", "add", "site", *[str(context.resolve(reference)) for reference in recipe["packages"]], timeout=300)
    aptly("publish", "repo", "-skip-signing", "-skip-contents", "-skip-bz2", f"-architectures={ARCHITECTURE}", "site")
    public = aptly.root / "public"
    run(
        ["tar", "--create", "--sort=name", f"--file={out / 'repository.tar'}", "--directory", str(public), "."],
        timeout=120,
    )
    shutil.copyfile(public / "dists" / recipe["suite"] / "Release", out / "Release")
    aptly.remove()
    return {"suite": recipe["suite"], "component": recipe["component"]}


class _Aptly:
    """aptly with its own state, which is removed after use."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.remove()
        root.mkdir(parents=True)
        self.config = root / "aptly.conf"
        # aptly's own OpenPGP code cannot read Debian's newest keys, but gpg can.
        options = {"rootDir": str(root), "gpgProvider": "gpg", "downloadConcurrency": 8, "databaseOpenAttempts": 1}
        self.config.write_text(json.dumps(options), encoding="utf-8")

    def __call__(self, *arguments: str, timeout: float = 300) -> None:
        run(["aptly", f"-config={self.config}", *arguments], timeout=timeout)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
