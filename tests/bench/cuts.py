"""A node whose network is cut while its power and its storage are not: what ran there goes on, and nobody hears it."""

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
from trainyard.trainings.logs import events

TABLE = "inet trainyard_drill"
RULES = f"""\
table {TABLE} {{
  chain in {{ type filter hook input priority -300; iifname "eth0" drop; }}
  chain out {{ type filter hook output priority -300; oifname "eth0" drop; }}
  chain past {{ type filter hook forward priority -300; iifname "eth0" drop; oifname "eth0" drop; }}
}}
"""
GIVEN_UP_SECONDS = 120.0
"""For the cluster to say that it does not hear of a node; it takes 50 s."""
OVERTAKEN_SECONDS = 30.0
BACK_SECONDS = 180.0
HEARD_SECONDS = 2.0
"""Within which a chief that was overtaken ends (workloads/lib/lease.py looks every second)."""


def cut(watched: Watched, lab: str, role: str) -> Pod:
    """Cut the network of the node of a role's pod, until another chief has taken the run.

    :returns: the pod, which went on behind the cut when the cluster had given up its node, and has ended by itself.
    :raises BenchError: it did not.
    """
    pod = watched.pod(role)
    node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
    _nft(node_container(lab, pod), RULES)
    until(f"the loss of {node}", lambda: ready(watched.api, node) == "Unknown", GIVEN_UP_SECONDS)
    if not runs(lab, pod):
        raise BenchError(f"{name} did not go on behind the cut, so that nothing was tried.")
    until_elsewhere(watched, pod)
    # Nobody can reach it: it has seen in the folder of the run that it is overtaken.
    until(f"the end of {name} behind the cut", lambda: not runs(lab, pod), OVERTAKEN_SECONDS)
    return pod


def heal(lab: str, node: str) -> None:
    """Give a node its network back; nothing happens where it has it."""
    _nft(f"{lab}-{node}", f"table {TABLE} {{}}\ndelete table {TABLE}\n")


def cut_and_back(watched: Watched, lab: str, role: str) -> Pod:
    """Cut the network of a node, and give it back when another chief has the run: nothing of the old may go on."""
    before = [pod for pod in watched.pods() if pod["spec"].get("nodeName") == watched.pod(role)["spec"]["nodeName"]]
    pod = cut(watched, lab, role)
    node = pod["spec"]["nodeName"]
    heal(lab, node)
    until(f"the return of {node}", lambda: ready(watched.api, node) == "True", BACK_SECONDS)
    what = f"the end of {', '.join(each['metadata']['name'] for each in before)}"
    until(what, lambda: not any(runs(lab, each) for each in before), BACK_SECONDS, pause=2)
    return pod


def off_and_back(watched: Watched, lab: str, role: str) -> Pod:
    """Cut the power of a node until what ran there runs elsewhere, then start it again."""
    pod = switch_off(watched, lab, role)
    until_elsewhere(watched, pod)
    node = pod["spec"]["nodeName"]
    name = node_container(lab, pod)
    # As the role `lab` does: what a power cut leaves has to be cleared first, where the engine has not done it yet.
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
    """What the cluster says of a node: True, False, or Unknown where it does not hear of it."""
    found = api.get("v1", "Node", node) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == "Ready"), "")


def runs(lab: str, pod: Pod) -> bool:
    """Whether the process of a pod is alive, asked of its node and not of the cluster."""
    tasks = ["podman", "exec", node_container(lab, pod), "ctr", "--namespace=k8s.io", "tasks", "ls"]
    told = subprocess.run(tasks, check=True, capture_output=True, text=True, timeout=60).stdout
    return any(line.split()[::2] == [container_of(pod), "RUNNING"] for line in told.splitlines())


def written(stand: Stand, watched: Watched, node: str) -> list[dict[str, Any]]:
    """What all chiefs of the run have written into its folder, also those that nobody could hear.

    :param node: one that has its network and its power.
    """
    text = stand.on_node(node, "cat", f"{inputs.SHARED}/{watched.run.name}/attempts/{watched.attempt}/metrics.jsonl")
    return sorted(events(text), key=lambda event: float(event["time"]))


def require_one_writer(told: Sequence[Mapping[str, Any]], moment: float) -> None:
    """Look at what two chiefs have written of which one was cut off.

    :param moment: of the cut, seconds since the epoch.
    :raises BenchError: the one that was cut off has saved after it was overtaken; or it did not go on until then, so
        that nothing was proven.
    """
    begins = [event["time"] for event in told if event["event"] == "start"]
    if len(begins) < 2:
        raise BenchError("No other chief has taken the folder of the run.")
    overtaken = begins[1]
    if not any(moment + GIVEN_UP_SECONDS / 4 < event["time"] < overtaken for event in told if event["event"] == "step"):
        raise BenchError("The chief that was cut off did not go on, so that nothing was proven.")
    saved = [
        (event["time"], PurePosixPath(event["path"]).parent.name) for event in told if event["event"] == "checkpoint"
    ]
    first = next((epoch for _, epoch in saved), "")
    late = [time for time, epoch in saved if epoch == first and time > overtaken + HEARD_SECONDS]
    if late:
        raise BenchError(f"The chief that was cut off saved {late[0] - overtaken:.1f} s after it was overtaken.")


def _nft(container: str, given: str) -> None:
    """Change the firewall of a node with its own nft: an older one of the machine's ends by a signal on its tables."""
    inside = ["podman", "exec", "--interactive", container, "nft", "-f", "-"]
    subprocess.run(inside, input=given, check=True, capture_output=True, text=True, timeout=60)


def plug(lab: str, node: str, state: str) -> None:
    """Pull the cable of a node, or put it back, from outside: a node without a firewall has no nft.

    :param state: `down` or `up`.
    """
    peer = ["podman", "exec", f"{lab}-{node}", "cat", "/sys/class/net/eth0/iflink"]
    index = int(subprocess.run(peer, check=True, capture_output=True, text=True, timeout=60).stdout)
    links = subprocess.run(["ip", "-json", "link"], check=True, capture_output=True, text=True, timeout=60).stdout
    name = next(link["ifname"] for link in json.loads(links) if link["ifindex"] == index)
    subprocess.run(["ip", "link", "set", name, state], check=True, timeout=60)
