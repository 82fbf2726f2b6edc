"""Cut the network of a node but not its power and storage: its processes continue, unreachable for the cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import inputs
from mishaps import Pod, Watched, container_of, node_container, switch_off, until
from stand import Stand
from timed import BenchError

from trainyard.kube.api import Api
from trainyard.trainings.log_events import events

TABLE = "inet trainyard_drill"
RULES = f"""\
table {TABLE} {{
  chain in {{ type filter hook input priority -300; iifname "eth0" drop; }}
  chain out {{ type filter hook output priority -300; oifname "eth0" drop; }}
  chain past {{ type filter hook forward priority -300; iifname "eth0" drop; oifname "eth0" drop; }}
}}
"""
GIVEN_UP_SECONDS = 120.0
"""Time for the cluster to report that a node is unreachable; it takes 50 s."""
OVERTAKEN_SECONDS = 30.0
BACK_SECONDS = 180.0
HEARD_SECONDS = 2.0
"""Time within which an overtaken chief ends (workloads/engine/run/run_lease.py checks every second)."""


def cut(watched: Watched, lab: str, role: str) -> Pod:
    """Cut the network of the node of a role's pod, until another chief has taken the run.

    :returns: the pod, which continued behind the cut after the cluster had given up its node, and then ended by itself.
    :raises BenchError: it did not.
    """
    pod = watched.pod(role)
    node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
    _nft(node_container(lab, pod), RULES)
    until(f"the loss of {node}", lambda: ready(watched.api, node) == "Unknown", GIVEN_UP_SECONDS)
    if not runs(lab, pod):
        raise BenchError(f"{name} did not continue behind the cut, so nothing was tested.")
    until_elsewhere(watched, pod)
    # No request can reach it: it must notice in the run's folder that it was overtaken.
    until(f"the end of {name} behind the cut", lambda: not runs(lab, pod), OVERTAKEN_SECONDS)
    return pod


def heal(lab: str, node: str) -> None:
    """Restore the network of a node, if it was cut."""
    _nft(f"{lab}-{node}", f"table {TABLE} {{}}\ndelete table {TABLE}\n")


def cut_and_back(watched: Watched, lab: str, role: str) -> Pod:
    """Cut the network of a node, and restore it when another chief has the run: the old pods must end."""
    before = [pod for pod in watched.pods() if pod["spec"].get("nodeName") == watched.pod(role)["spec"]["nodeName"]]
    pod = cut(watched, lab, role)
    node = pod["spec"]["nodeName"]
    heal(lab, node)
    until(f"the return of {node}", lambda: ready(watched.api, node) == "True", BACK_SECONDS)
    what = f"the end of {', '.join(each['metadata']['name'] for each in before)}"
    until(what, lambda: not any(runs(lab, each) for each in before), BACK_SECONDS, pause=2)
    return pod


def off_and_back(watched: Watched, lab: str, role: str) -> Pod:
    """Cut the power of a node until its pods run elsewhere, then start it again."""
    pod = switch_off(watched, lab, role)
    until_elsewhere(watched, pod)
    node = pod["spec"]["nodeName"]
    name = node_container(lab, pod)
    # As in the role `lab`: remnants of a power cut must be cleared first, if the engine has not done it yet.
    subprocess.run(["podman", "container", "cleanup", name], check=False, timeout=60, capture_output=True)
    subprocess.run(["podman", "start", name], check=True, timeout=60, capture_output=True)
    until(f"the return of {node}", lambda: ready(watched.api, node) == "True", BACK_SECONDS)
    return pod


def until_elsewhere(watched: Watched, pod: Pod) -> None:
    """Wait for a step of another chief than this pod."""
    name = pod["metadata"]["name"]

    def steps() -> bool:
        watched.look()
        others = [told for chief, told in watched.said.items() if chief != name]
        return any(event["event"] == "step" for told in others for event in told)

    until("a step of another chief", steps, BACK_SECONDS)


def ready(api: Api, node: str) -> str:
    """Return the readiness of a node in the cluster: True, False, or Unknown if it is unreachable."""
    found = api.get("v1", "Node", node) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == "Ready"), "")


def runs(lab: str, pod: Pod) -> bool:
    """Return whether the process of a pod is alive, according to its node and not to the cluster."""
    tasks = ["podman", "exec", node_container(lab, pod), "ctr", "--namespace=k8s.io", "tasks", "ls"]
    told = subprocess.run(tasks, check=True, capture_output=True, text=True, timeout=60).stdout
    return any(line.split()[::2] == [container_of(pod), "RUNNING"] for line in told.splitlines())


def written(stand: Stand, watched: Watched, node: str) -> list[dict[str, Any]]:
    """Return the events that all chiefs of the run have written into its folder, including unreachable ones.

    :param node: a node with network and power.
    """
    text = stand.on_node(node, "cat", f"{inputs.SHARED}/{watched.run.name}/attempts/{watched.attempt}/metrics.jsonl")
    return sorted(events(text), key=lambda event: float(event["time"]))


def require_one_writer(told: Sequence[Mapping[str, Any]], moment: float) -> None:
    """Check the events of two chiefs after one was cut off.

    :param moment: time of the cut, seconds since the epoch.
    :raises BenchError: the cut off chief saved after it was overtaken; or it did not continue until then, so nothing
        was proven.
    """
    begins = [event["time"] for event in told if event["event"] == "start"]
    if len(begins) < 2:
        raise BenchError("No other chief has taken the folder of the run.")
    overtaken = begins[1]
    if not any(moment + GIVEN_UP_SECONDS / 4 < event["time"] < overtaken for event in told if event["event"] == "step"):
        raise BenchError("The chief that was cut off did not continue, so nothing was proven.")
    saved = [
        (event["time"], PurePosixPath(event["path"]).parent.name) for event in told if event["event"] == "checkpoint"
    ]
    first = next((epoch for _, epoch in saved), "")
    late = [time for time, epoch in saved if epoch == first and time > overtaken + HEARD_SECONDS]
    if late:
        raise BenchError(f"The chief that was cut off saved {late[0] - overtaken:.1f} s after it was overtaken.")


def _nft(container: str, given: str) -> None:
    """Change the firewall of a node with its own nft: an older nft of the machine crashes on its tables."""
    inside = ["podman", "exec", "--interactive", container, "nft", "-f", "-"]
    subprocess.run(inside, input=given, check=True, capture_output=True, text=True, timeout=60)


def plug(lab: str, node: str, state: str) -> None:
    """Disconnect or reconnect a node from outside, because a node without a firewall has no nft.

    :param state: `down` or `up`.
    """
    peer = ["podman", "exec", f"{lab}-{node}", "cat", "/sys/class/net/eth0/iflink"]
    index = int(subprocess.run(peer, check=True, capture_output=True, text=True, timeout=60).stdout)
    links = subprocess.run(["ip", "-json", "link"], check=True, capture_output=True, text=True, timeout=60).stdout
    name = next(link["ifname"] for link in json.loads(links) if link["ifindex"] == index)
    subprocess.run(["ip", "link", "set", name, state], check=True, timeout=60)
