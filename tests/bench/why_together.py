#!/usr/bin/env python3
"""Inject six faults into a lab at the same time; `trainyard why` must name each as the first cause.

    .venv/bin/python tests/bench/why_together.py [--inventory FOLDER --lab trainyard [--data CLAIM]]

Nothing is undone: afterwards one node has no kubelet.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import inputs
from stand import Stand, add_options, standing
from timed import BenchError
from why import find, inject
from why_faults import FAULTS, description
from why_lab import WORKER, Scene

from trainyard.kube.api import KubeError
from trainyard.trainings.model import Training
from trainyard.why.judge import judge

SIX = ("too_large", "image", "quota", "kubelet", "ps_stopped", "memory")
SMALL: Mapping[str, Any] = {"cpu": "50m", "memory": "256Mi"}
"""Requests of each pod, so that all runs fit at the same time."""
QUOTA_SPACE = "why-quota"
"""A separate namespace, because the quota must not affect the others."""


def small(run: Training, name: str, data: str) -> Training:
    """Return a minimal run, on data of the lab.

    :param data: claim with the folder `mnist`; empty for the image.
    """
    roles = {role: replace(each, requests=SMALL, replicas=1, spread=False) for role, each in run.roles.items()}
    changed = replace(run, roles=roles, namespace=QUOTA_SPACE if name == "quota" else run.namespace)
    return replace(changed, data_image="", data_claim=data, data_folder="mnist") if data else changed


def places(name: str) -> dict[str, str]:
    """Return the nodes of a run's pods: only one run has its worker on the node that loses its kubelet."""
    return {"chief": "worker1", "ps": "worker1", "worker": WORKER if name == "kubelet" else "worker1"}


def run(stand: Stand, bundle: Mapping[str, Mapping[str, Any]], name: str, data: str) -> str:
    """Inject one fault and wait until it is named; return why it was not, or an empty string."""
    what = FAULTS[name]
    scene = Scene(stand, small(description(bundle, name), name, data))
    try:
        inject(scene, what, places(name))
        seen, seconds, _ = find(scene, what)
    except (BenchError, KubeError, subprocess.SubprocessError) as error:
        return f"{name}: {error}"
    cause = judge(seen).cause
    print(f"why: {name}: {cause.code if cause else '?'} after {seconds:.1f} s", flush=True)
    return ""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--data", default="", help="claim with the data of mnist, if the registry has no image of it")
    options = parser.parse_args(argv)
    try:
        with standing(options) as stand, ThreadPoolExecutor(len(SIX)) as pool:
            bundle = inputs.artefacts(inputs.CACHE)
            wrong = [each for each in pool.map(lambda name: run(stand, bundle, name, options.data), SIX) if each]
    except BenchError as error:
        wrong = [str(error)]
    for each in wrong:
        print(f"why: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
