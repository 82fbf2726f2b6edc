"""Memory of the console, a TensorBoard and the whole lab while a run is watched."""

from __future__ import annotations

import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from console_measures import BOARD, CONSOLE, MADE, RESIDENT, WHOLE, rate
from console_stand import Visit
from memory import Sampler
from stand import NAMESPACE, Stand
from timed import BenchError

from trainyard.kube.api import KubeError

MANY = 20
CACHES = Path("/proc/sys/vm/drop_caches")
PODS = {"trainyard-console/console-": CONSOLE, f"{NAMESPACE}/tensorboard-": BOARD}
UNITS = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "": 1.0}


def memory(visit: Visit) -> dict[str, list[float]]:
    """Return the memory of the console, a TensorBoard and the lab with twenty viewers of a run."""
    most = {CONSOLE: 0.0, BOARD: 0.0}
    with Sampler(visit.stand.lab) as made:
        time.sleep(5)
    # A pulled image counts as in use permanently: its file was read twice, and nothing else needs the memory.
    subprocess.run(["sync"], check=True, timeout=60)
    CACHES.write_text("1\n", encoding="ascii")
    with Sampler(visit.stand.lab) as peak, ThreadPoolExecutor(1) as pool:
        run = pool.submit(rate, visit, MANY)
        while not run.done():
            for name, used in usage(visit.stand).items():
                what = next((what for begin, what in PODS.items() if name.startswith(begin)), None)
                if what:
                    most[what] = max(most[what], used / 1e6)
            time.sleep(2)
        run.result()
    if not all(most.values()):
        raise BenchError(f"The use of pods does not name all of them: {most}.")
    lab = {WHOLE: [peak.working_set / 1e9], RESIDENT: [peak.resident / 1e9], MADE: [made.working_set / 1e9]}
    return {name: [value] for name, value in most.items()} | lab


def usage(stand: Stand) -> dict[str, float]:
    """Return namespace and name of a pod -> bytes, from the metrics API."""
    try:
        answer = json.loads(stand.api.call("GET", "/apis/metrics.k8s.io/v1beta1/pods", what="the use of pods"))
    except KubeError:  # it has no metrics yet of a pod that has just started
        return {}
    return {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": sum(
            in_bytes(one["usage"]["memory"]) for one in each["containers"]
        )
        for each in answer["items"]
    }


def in_bytes(quantity: str) -> float:
    found = re.fullmatch(r"(\d+)(Ki|Mi|Gi|)", quantity)
    if not found:
        raise BenchError(f"{quantity!r} is not a supported quantity of memory.")
    return float(found[1]) * UNITS[found[2]]
