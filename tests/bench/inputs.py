#!/usr/bin/env python3
"""Provide both sides of the benchmark with the locations of the bundle's artefacts, and with the training, as files.

    python tests/bench/inputs.py DIRECTORY [CACHE]

It writes `inputs.sh` (variables for by_hand.sh), `images` (layout and reference, one image a line), and two runs of the
lab's training as manifests: `NAME-around.json` (namespace, policies, volume) and `NAME-jobset.json`. Nothing is built.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from trainyard.bundle import lockfile
from trainyard.bundle.artefact_store import Store
from trainyard.bundle.assemble import Assembly
from trainyard.bundle.context import Context
from trainyard.trainings.catalogue import read_catalogue
from trainyard.trainings.jobset import run_object
from trainyard.trainings.model import Training
from trainyard.trainings.objects import surroundings
from trainyard.trainings.resolve import entry_of, resolve
from trainyard.trainings.site_images import Defaults
from trainyard.trainings.spec import parse_training

ROOT = Path(__file__).resolve().parents[2]
# Programs in this folder share helpers with the tests.
sys.path.append(str(ROOT))
CACHE = "/var/cache/trainyard"
REGISTRY = "mirror.trainyard.internal:5000/trainyard"
SHARED = "/srv/trainyard/shared/training"
"""Path of the claim with the runs' folders on the lab's nodes (inventories/lab, role storage)."""
LOG_NODE = "worker1"
LOG_PATH = "/var/lib/trainyard/trainings"
SEED = {"run": "seed", "train_steps": 200, "accuracy_bound": 0}
"""The training of the original request; batch size, learning rate and roles are the catalogue's."""


def artefacts(cache: str | Path) -> dict[str, dict[str, Any]]:
    """Return the bundle's artefacts by name, with path and facts.

    :raises SystemExit: an artefact is not built yet.
    """
    entries = lockfile.load(str(ROOT / "bundle.lock.yml"))
    assembly = Assembly(entries, None, Store(cache), Context(ROOT, Path(cache), ""), source="source")
    if assembly.missing:
        raise SystemExit(f"The bundle in {cache} lacks {', '.join(assembly.missing)}; run site.yml once to build it.")
    return assembly.result()


def training(bundle: Mapping[str, Mapping[str, Any]], override: Mapping[str, Any], claim: str = "") -> Training:
    """Return the lab's training: catalogue, the inventory's settings, the bundle's images by digest, then `override`.

    :param claim: claim for its files; a folder on one node if empty.
    """
    knobs = yaml.safe_load((ROOT / "inventories/lab/group_vars/all/workloads.yml").read_text(encoding="utf-8"))
    wanted = {**knobs["workloads_trainings"][0], **override}
    logs = {"claim": claim} if claim else {"size": "1Gi", "node": LOG_NODE, "path": LOG_PATH}
    resolved = resolve(wanted, entry_of(wanted, read_catalogue([])))
    return parse_training(resolved.bound(Defaults(REGISTRY, bundle, logs)))


def write_manifests(folder: Path, run: Training) -> None:
    """Write the run `run` as two lists for `kubectl apply`."""
    for part, items in (("around", surroundings(run)), ("jobset", [run_object(run, "bench")])):
        document = {"apiVersion": "v1", "kind": "List", "items": items}
        (folder / f"{run.name}-{part}.json").write_text(json.dumps(document), encoding="utf-8")


def shell_variables(bundle: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, str]:
    """Return the variables of by_hand.sh. Versions are the lock's, without a leading v."""
    locked = yaml.safe_load((ROOT / "bundle.lock.yml").read_text(encoding="utf-8"))["artefacts"]

    def version(entry: str) -> str:
        return re.sub(r"^v", "", str(locked[entry]["version"]))

    node = bundle["image_lab_node"]
    return {
        "NODE_LAYOUT": node["layout"],
        # The image name of the lab role, so that neither side loads an image that the other has loaded.
        "NODE_IMAGE": f"localhost/trainyard/lab-node:{node['digest'].removeprefix('sha256:')[:16]}",
        "REPOSITORY": bundle["apt_repository"]["path"],
        "SUITE": bundle["apt_repository"]["suite"],
        "CALICO_MANIFEST": f"{bundle['calico_manifest']['path']}/calico-vxlan.yaml",
        "JOBSET_MANIFEST": f"{bundle['jobset_manifest']['path']}/jobset.yaml",
        "KUBERNETES_VERSION": version("kubernetes"),
        "CRI_TOOLS_VERSION": version("cri_tools"),
        "CNI_VERSION": version("cni_plugins"),
        "CONTAINERD_VERSION": version("containerd"),
        "ETCD_TAG": version("image_etcd"),
        "COREDNS_TAG": f"v{version('coredns')}",
        "PAUSE_TAG": version("image_pause"),
        "TRAINING": name,
        "LOG_NODE": LOG_NODE,
        "LOG_PATH": LOG_PATH,
    }


def write(folder: Path, cache: str | Path = CACHE) -> dict[str, dict[str, Any]]:
    """Write all files to `folder`, and return the artefacts."""
    bundle = artefacts(cache)
    folder.mkdir(parents=True, exist_ok=True)
    run = training(bundle, {})
    for each in (run, training(bundle, SEED)):
        write_manifests(folder, each)
    pushed = [
        f"{entry['layout']} {entry['reference']}"
        for entry in bundle.values()
        if entry["kind"] == "image" and not entry["reference"].startswith("localhost/")
    ]
    (folder / "images").write_text("".join(f"{line}\n" for line in sorted(pushed)), encoding="utf-8")
    lines = [f"{key}={shlex.quote(value)}\n" for key, value in shell_variables(bundle, run.name).items()]
    (folder / "inputs.sh").write_text("".join(lines), encoding="utf-8")
    return bundle


if __name__ == "__main__":
    write(Path(sys.argv[1]), *sys.argv[2:3])
