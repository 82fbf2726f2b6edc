#!/usr/bin/env python3
"""Build the image with CUDA, which no test site builds, and check it.

    .venv/bin/python tests/bench/gpu_image.py

Its libraries must be found and load, its versions must satisfy workloads/compat.json, and its label must match the
lock. A training in it that requires a GPU must fail because there is no GPU, not because CUDA is missing. It needs
root, the Python index and `FREE_BYTES` of disk space, but no GPU and no lab.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import inputs
from timed import BenchError, timed

from engine import compat
from engine.errors import InputError
from tools.compat_columns import PARTS
from trainyard.bundle import lockfile
from trainyard.bundle.artefact_store import Store
from trainyard.bundle.assemble import Assembly
from trainyard.bundle.build import image
from trainyard.bundle.context import Context
from trainyard.core.errors import TrainyardError
from trainyard.trainings.log_events import events, last

ARTEFACT = "image_tensorflow_gpu"
LABEL = "dev.trainyard.cuda"
FREE_BYTES = 25 << 30
"""During the build the wheels exist three times (downloaded, in the context, in a layer), and twice installed."""
BUILD_SECONDS, RUN_SECONDS = 2100, 180
PROGRAM = Path(__file__).with_name("gpu_image") / "look.py"
LIMITS = ("--ulimit=nofile=20000:20000", "--ulimit=nproc=32768:32768")
"""Limits that also a machine allows that cannot raise them."""


def require_room(cache: Path) -> None:
    """Check the disk space before any download.

    :raises BenchError: there is not enough.
    """
    there = next(path for path in (cache, *cache.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < FREE_BYTES:
        raise BenchError(f"{there} has {free >> 30} GiB free, and the image needs {FREE_BYTES >> 30} to be made.")


def assembly(cache: Path) -> Assembly:
    """Return the assembly of the image from the bundle's store, which knows the missing parts."""
    entries = lockfile.load(str(inputs.ROOT / "bundle.lock.yml"))
    return Assembly(entries, [ARTEFACT], Store(cache), Context(inputs.ROOT, cache, ""), source="source")


def make(log: Path) -> None:
    """Build it with the role, as a site would."""
    wanted = {"supply": "vendors", "bundle_artefacts_wanted": [ARTEFACT], "bundle_artefacts_of_site": []}
    program = str(Path(sys.executable).with_name("ansible"))
    role = ["localhost", "-m", "ansible.builtin.include_role", "-a", "name=bundle"]
    timed([program, *role, "-e", json.dumps(wanted)], log, BUILD_SECONDS)


def labels(layout: Path) -> dict[str, str]:
    """Return the labels of an image in an OCI layout."""

    def blob(digest: str) -> Any:
        return json.loads((layout / "blobs" / digest.replace(":", "/")).read_text(encoding="utf-8"))

    manifest = json.loads((layout / "index.json").read_text(encoding="utf-8"))["manifests"][0]["digest"]
    return dict(blob(blob(manifest)["config"]["digest"])["config"].get("Labels") or {})


def faults(found: Mapping[str, Any], labelled: str, locked: Mapping[str, Any]) -> list[str]:
    """Return the faults of an image.

    :param found: output of `look.py` in it.
    :param labelled: its label.
    :param locked: its entry in the lock.
    """
    cuda, cudnn, nccl = (found["packages"][PARTS[name]] for name in ("cuda", "cudnn", "nccl"))
    short = ".".join(cuda.split(".")[:2])
    wrong = [f"{name}: {where}" for name, where in found["libraries"].items() if not where.startswith("/")]
    wrong += [f"TensorFlow does not look where {name} is" for name in found["not_searched"]]
    wrong += [f"{name} is missing" for name in found["no_programs"]]
    if not found["build"]["is_cuda_build"]:
        wrong.append("its TensorFlow was built without CUDA")
    if found["tensorflow"] != locked["version"]:
        wrong.append(f"its TensorFlow is {found['tensorflow']}, the lock's {locked['version']}")
    for what, version in (("label", labelled), ("entry in the lock", str(locked["arguments"]["CUDA"]))):
        if version != short:
            wrong.append(f"its {what} says CUDA {version}, its wheels are {short}")
    built = str(found["build"]["cuda_version"])
    if not compat.serves(built, compat.table_row(found["tensorflow"])["cuda"]):
        wrong.append(f"its TensorFlow was built with CUDA {built}, which is not that of compat.json")
    versions = {"tensorflow": found["tensorflow"], "python": found["python"], "cuda": short}
    try:
        compat.check(compat.Combination("single", "custom", "none", **versions, cudnn=cudnn, nccl=nccl))
    except InputError as error:
        wrong.append(str(error))
    return wrong


def run(podman: list[str], *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    argv = [*podman, "run", "--rm", "--interactive", "--network=none", *LIMITS, *arguments]
    return subprocess.run(argv, input=given, capture_output=True, text=True, check=False, timeout=RUN_SECONDS)


def look(podman: list[str], made: str) -> dict[str, Any]:
    """Return the output of `look.py` in the image."""
    said = run(podman, made, "python", "-", *PARTS.values(), given=PROGRAM.read_text(encoding="utf-8"))
    lines = [line for line in said.stdout.splitlines() if line.startswith("{")]
    if said.returncode or not lines:
        raise BenchError(f"{PROGRAM.name} ended with {said.returncode} in the image: {said.stderr.strip()[-2000:]}")
    return dict(json.loads(lines[-1]))


def require_refusal(podman: list[str], made: str) -> None:
    """Run a training in it, on this machine without a GPU.

    :raises BenchError: it does not fail because of the missing GPU.
    """
    code = f"--volume={inputs.ROOT / 'workloads'}:/opt/trainyard/code:ro"
    said = run(podman, code, made, "python", "-m", "training.mnist_gpu.main", "--log_dir=/tmp/logs")
    message = str(last(events(said.stdout), "error").get("message"))
    if said.returncode != 2 or "this pod was given none" not in message:
        raise BenchError(f"A training that requires a GPU ended with {said.returncode}: {message}")


def prove(cache: Path, folder: Path) -> None:
    if assembly(cache).missing:
        require_room(cache)
        make(folder / "bundle.log")
    (made,) = assembly(cache).result().values()
    context = Context(inputs.ROOT, cache, "")
    podman = image.podman(context)
    identity = image.load(podman, Path(made["layout"]))
    locked = lockfile.load(str(inputs.ROOT / "bundle.lock.yml"))[ARTEFACT]
    entry = {"version": locked.version, **locked.recipe}
    if wrong := faults(look(podman, identity), labels(Path(made["layout"])).get(LABEL, ""), entry):
        raise BenchError("; ".join(wrong))
    require_refusal(podman, identity)
    image.prune(context)
    print(f"gpu_image: {made['reference']} is whole", flush=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--cache", type=Path, default=Path(inputs.CACHE), help="bundle_cache_dir (default: %(default)s)"
    )
    options = parser.parse_args(argv)
    if os.geteuid():
        print("gpu_image: building an image needs root", file=sys.stderr)
        return 1
    folder = Path(tempfile.mkdtemp(prefix="trainyard-gpu-image-", dir="/var/tmp"))
    print(f"logs are in {folder}", flush=True)
    try:
        prove(options.cache, folder)
    except (BenchError, TrainyardError) as error:
        print(f"gpu_image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
