"""Memory that the console, a TensorBoard and the whole lab take while a run is watched."""

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
    """What the console, a TensorBoard and the lab take while twenty watch a run."""
    most = {CONSOLE: 0.0, BOARD: 0.0}
    with Sampler(visit.stand.lab) as made:
        time.sleep(5)
    # An image that was pulled counts as in use for good: its file was read twice, and nothing else wants the memory.
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
    """Namespace and name of a pod -> bytes, as the usage API says."""
    try:
        answer = json.loads(stand.api.call("GET", "/apis/metrics.k8s.io/v1beta1/pods", what="the use of pods"))
    except KubeError:  # it has none yet of a pod that has just begun
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
        raise BenchError(f"{quantity!r} is no quantity of memory that is known here.")
    return float(found[1]) * UNITS[found[2]]
