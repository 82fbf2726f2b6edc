"""The stage `pods`: two runs of the catalogue on a site, which needs the checkout and an inventory.

A file of its own, because it alone changes something: both runs leave their records, and no pod.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.command import run
from ...core.errors import CommandError
from ...core.untrusted import items, line, mapping
from .report import Kit, Result, failed, not_run, passed

PROJECT, INVENTORY = "GPU_PROOF_PROJECT", "GPU_PROOF_INVENTORY"
"""Variables of the call: the checkout, and the site's inventory."""
RUN_TIMEOUT = 3_600
"""Seconds for one run; the first one builds or pulls the image with CUDA, of 5 GB."""
LOOK_TIMEOUT = 120
RUNS = {"gpu-proof-smi": "nvidia_smi", "gpu-proof-mnist": "mnist_gpu"}
"""Name of the run -> workload."""


def pods(kit: Kit) -> Result:
    """Run `nvidia_smi` and `mnist_gpu` in pods, and read from the site whether the training computed on a GPU."""
    project, inventory = kit.environment.get(PROJECT), kit.environment.get(INVENTORY)
    if not project or not inventory:
        return not_run("There is no site. On its controller, run make gpu-proof STAGE=pods INVENTORY=inventories/SITE.")
    environment = {"PATH": f"{project}/.venv/bin:{kit.environment.get('PATH', '')}"}
    for name, workload in RUNS.items():
        argv = [
            "ansible-playbook",
            "playbooks/train.yml",
            "-i",
            inventory,
            "-e",
            f"workload={workload}",
            "-e",
            f"run={name}",
        ]
        argv += ["-e", "resume=fresh", "-e", json.dumps({"workloads_require_gpu": True})]
        try:
            run(argv, timeout=RUN_TIMEOUT, cwd=project, env=environment)
        except CommandError as error:
            return failed(f"{workload} failed in a pod: {error}")
    argv = ["trainyard", "-i", str(Path(project) / inventory), "trainings", "--json"]
    try:
        found = json.loads(run(argv, timeout=LOOK_TIMEOUT, cwd=project, env=environment).stdout)
    except (ValueError, RecursionError) as error:
        return failed(f"trainyard trainings printed no JSON: {error}")
    return judge(mapping(found))


def judge(found: Mapping[str, Any]) -> Result:
    """Return the result from the output of `trainyard trainings --json`."""
    rows = {str(row.get("run")): row for row in map(mapping, items(found.get("trainings")))}
    row = rows.get("gpu-proof-mnist", {})
    state, compute = line(row.get("state"), 40) or "missing", line(row.get("compute"), 20) or "unknown"
    if state != "passed" or compute != "gpu":
        return failed(f"mnist_gpu in a pod is {state}, compute {compute}")
    return passed("nvidia_smi and mnist_gpu ran in pods, compute gpu")
