"""Builders for programs and files from Go modules.

Each component has its own wrapper module in the repository: a `go.mod` with the main packages as tools, and a `go.sum`
that pins the hashes of all modules. A shared wrapper would mix the components' dependency versions.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from ...core.errors import TrainyardError
from ..build_program import run
from ..context import EPOCH, Context
from ..lockfile import Artefact

BUILD_TIMEOUT = 2400
"""Seconds for one build. All of Kubernetes takes 310 s on two cores; this allows for one core and a slow network."""


def programs(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Build programs (kind `go_programs`).

    Recipe: `wrapper` (reference to the wrapper module), `programs` (name -> main package), `tags`, `cgo` (false),
    `ldflags`, `stamp` (packages whose version variables are set as Kubernetes' own build does), `flags`.
    """
    recipe = artefact.recipe
    wrapper = _wrapper(artefact, context)
    ldflags = ["-s", "-w", *recipe.get("ldflags", []), *_stamps(recipe.get("stamp", []), artefact.version)]
    shared = ["-trimpath", "-ldflags", " ".join(ldflags), *recipe.get("flags", [])]
    if recipe.get("tags"):
        shared += ["-tags", " ".join(recipe["tags"])]
    by_base = {package.rsplit("/", 1)[-1]: name for name, package in recipe["programs"].items()}
    environment = _environment(context, cgo=bool(recipe.get("cgo")))
    _verify_modules(wrapper, environment)
    if all(base == name for base, name in by_base.items()):
        # A single call compiles shared packages only once, and links in parallel.
        argv = ["go", "build", *shared, "-o", f"{out}/", *recipe["programs"].values()]
        run(argv, cwd=str(wrapper), env=environment, timeout=BUILD_TIMEOUT)
    else:
        for name, package in recipe["programs"].items():
            argv = ["go", "build", *shared, "-o", str(out / name), package]
            run(argv, cwd=str(wrapper), env=environment, timeout=BUILD_TIMEOUT)
    shutil.rmtree(wrapper)
    return {"toolchain": run(["go", "env", "GOVERSION"], env=environment, timeout=30).stdout.strip()}


def module_files(artefact: Artefact, out: Path, context: Context) -> dict[str, Any]:
    """Extract files from a module (kind `go_module_files`).

    Recipe: `wrapper`, `module` (its path), `files` (destination -> path in the module), `kustomize` (destination ->
    {path, program, images}: render a kustomization folder of the module with the `kubectl` at `program`; `images` maps
    image names in it to the names and tags that the site uses).
    """
    wrapper = _wrapper(artefact, context)
    module_path = artefact.recipe["module"]
    if f"{module_path} {artefact.version} h1:" not in (wrapper / "go.sum").read_text(encoding="utf-8"):
        raise TrainyardError(f"The wrapper module of {artefact.name} has no hash of {module_path} {artefact.version}.")
    environment = _environment(context, cgo=False)
    run(["go", "mod", "download", module_path], cwd=str(wrapper), env=environment, timeout=600)
    _verify_modules(wrapper, environment)
    argv = ["go", "list", "-mod=readonly", "-m", "-json", module_path]
    module = json.loads(run(argv, cwd=str(wrapper), env=environment, timeout=300).stdout)
    shutil.rmtree(wrapper)
    folder = Path(module["Dir"])
    for destination, source in artefact.recipe.get("files", {}).items():
        place = out / destination
        place.parent.mkdir(parents=True, exist_ok=True)
        if (folder / source).is_dir():
            shutil.copytree(folder / source, place, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(folder / source, place)
    for destination, job in artefact.recipe.get("kustomize", {}).items():
        rendered = run(
            [str(context.resolve(job["program"])), "kustomize", str(folder / job["path"])], timeout=60
        ).stdout
        for old, new in job.get("images", {}).items():
            if old not in rendered:
                raise TrainyardError(f"The manifest {destination} of {artefact.name} does not use the image {old}.")
            rendered = rendered.replace(old, new)
        (out / destination).write_text(rendered, encoding="utf-8")
    return {}


def _environment(context: Context, *, cgo: bool) -> dict[str, str]:
    """Return Go's environment: caches in the bundle's folder, shared by all components, with removable module files."""
    caches = context.cache / "go"
    return {
        "PATH": os.pathsep.join(filter(None, (context.go, os.environ.get("PATH", "")))),
        "GOCACHE": str(caches / "build"),
        "GOMODCACHE": str(caches / "modules"),
        "GOFLAGS": "-modcacherw",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        # This machine's settings must not disable checksums or allow plain HTTP.
        **dict.fromkeys(("GOPRIVATE", "GONOSUMDB", "GOINSECURE"), "none"),
        "CGO_ENABLED": "1" if cgo else "0",
        "HOME": os.environ.get("HOME", "/root"),
        "SOURCE_DATE_EPOCH": str(EPOCH),
    }


def _verify_modules(wrapper: Path, environment: dict[str, str]) -> None:
    """Compare the module cache with go.sum, because its files are writable and Go itself checks only downloads.

    :raises CommandError: a module was altered since its download; the message contains its folder.
    """
    run(["go", "mod", "verify"], cwd=str(wrapper), env=environment, timeout=600)


def _wrapper(artefact: Artefact, context: Context) -> Path:
    """Copy the wrapper module to a work folder, because Go writes into it.

    :raises TrainyardError: its version differs from the lock's.
    """
    wrapper = context.cache / "work" / f"wrapper-{artefact.name}"
    shutil.rmtree(wrapper, ignore_errors=True)
    shutil.copytree(context.resolve(artefact.recipe["wrapper"]), wrapper)
    if not re.search(rf"\s{re.escape(artefact.version)}(\s|$)", (wrapper / "go.mod").read_text(encoding="utf-8")):
        raise TrainyardError(
            f"The lock has {artefact.version} for {artefact.name}, but its wrapper requires another version.",
            remedy=f"Run `go get -tool PACKAGE@{artefact.version}` in the wrapper and commit both.",
        )
    return wrapper


def _stamps(packages: list[str], version: str) -> list[str]:
    """Return linker flags for the version variables that kubeadm and kubelet compare with each other.

    The names are those of k8s.io/component-base/version/base.go. The module proxy does not provide the commit.
    """
    major, minor, _ = version.lstrip("v").split(".", 2)
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "unknown",
        "buildDate": "2026-01-01T00:00:00Z",
    }
    return [f"-X={package}.{name}={value}" for package in packages for name, value in values.items()]
