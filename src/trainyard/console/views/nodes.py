"""Page of the nodes: whether they can be used, what they run, how busy they are, and their GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ...kube.api import Object
from ...kube.quantities import amount
from ...kube.reads import Reader, Unread, listing, must, objects
from ...trainings.gpu_nodes import row as gpu_row
from ...trainings.gpus import Holder, has_gpus, holders
from .everyone import Everyone, everyone
from .page import Page, Params
from .words import ago, duration, link, number, percent, plural, size

USAGE = "metrics.k8s.io/v1beta1"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True)
class Answers:
    """What was read.

    :param everyone: pods, as far as they may be seen.
    :param usage: node -> its measured use; an `Unread` says why there is none.
    """

    nodes: Sequence[Object]
    everyone: Everyone
    usage: Mapping[str, Mapping[str, str]] | Unread


def read(params: Params) -> Reader[Answers]:
    """
    :raises KubeError: nodes cannot be read.
    """
    nodes, usage = yield listing("v1", "nodes"), listing(USAGE, "nodes")
    measured: Mapping[str, Mapping[str, str]] | Unread = (
        usage if isinstance(usage, Unread) else {each["metadata"]["name"]: each["usage"] for each in usage["items"]}
    )
    return Answers(must(objects(nodes)), (yield from everyone()), measured)


def build(answers: Answers, params: Params, now: datetime) -> dict[str, Any]:
    """The view: `nodes`, and `unread`, sentences on what is not known and why."""
    unread = [answers.usage.reason] if isinstance(answers.usage, Unread) else []
    unread += answers.everyone.unread
    there, holding = _by_node(answers.everyone.pods), holders(answers.everyone.pods)
    rows = [
        node(each, answers, there.get(each["metadata"]["name"], []), holding, now)
        for each in sorted(answers.nodes, key=_order)
    ]
    offered = sum(each["gpus"]["offered"] for each in rows if each["gpus"])
    slots = [slot["state"] for each in rows if each["gpus"] for slot in each["gpus"]["slots"]]
    ready = sum(each["ready"] for each in rows)
    summary = [f"{ready} of {len(rows)} ready"]
    if offered:
        unknown = slots.count("unknown")
        said = f"{unknown} not known to be held" if unknown else f"{slots.count('free')} free"
        summary.append(f"{plural(offered, 'GPU')}, {said}")
    return {"nodes": rows, "unread": unread, "summary": summary}


def node(
    found: Object, answers: Answers, mine: Sequence[Object], holding: Mapping[str, Sequence[Holder]], now: datetime
) -> dict[str, Any]:
    """One node.

    :param mine: its pods that have not ended.
    :param holding: node -> pods with GPUs.
    """
    meta, status, spec = found["metadata"], found.get("status") or {}, found.get("spec") or {}
    info = status.get("nodeInfo") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    ready = conditions.get("Ready", {})
    usage = {} if isinstance(answers.usage, Unread) else answers.usage.get(meta["name"], {})
    return {
        "name": meta["name"],
        "href": link("cluster", "core", "v1", "nodes", meta["name"]),
        "role": "control plane" if CONTROL_PLANE in (meta.get("labels") or {}) else "worker",
        "ready": ready.get("status") == "True",
        "state": state(ready, spec),
        "tone": "bad" if ready.get("status") != "True" else "wait" if spec.get("unschedulable") else "good",
        "since": duration(ago(ready.get("lastTransitionTime"), now)),
        "why": "" if ready.get("status") == "True" else str(ready.get("message") or ""),
        "problems": [name for name in _PRESSURES if conditions.get(name, {}).get("status") == "True"],
        "cordoned": bool(spec.get("unschedulable")),
        "taints": [_taint(each) for each in spec.get("taints") or []],
        "kubelet": str(info.get("kubeletVersion", "")),
        "runtime": str(info.get("containerRuntimeVersion", "")).replace("://", " "),
        "kernel": str(info.get("kernelVersion", "")),
        "system": str(info.get("osImage", "")),
        "address": next((a["address"] for a in status.get("addresses") or [] if a["type"] == "InternalIP"), ""),
        "cpu": _resource("cpu", status, mine, usage),
        "memory": _resource("memory", status, mine, usage),
        "pods": len(mine),
        "gpus": gpus(found, answers.everyone, holding),
    }


def state(ready: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    said = {"True": "ready", "False": "not ready"}.get(str(ready.get("status")), "does not answer")
    return f"{said}, cordoned" if spec.get("unschedulable") else said


def gpus(found: Object, everyone: Everyone, holding: Mapping[str, Sequence[Holder]]) -> dict[str, Any] | None:
    """The GPUs of a node, each of them as a slot: held by a pod, free, or unhealthy; None where it has none.

    The cluster knows how many a pod holds, and not which, so that the order of the slots says nothing. What seems to be
    free is unknown where a pod that may not be seen could hold it, and then nobody knows how many are `free`.
    """
    if not has_gpus(found):
        return None
    row = gpu_row(found, holding.get(found["metadata"]["name"], []))
    held = [
        {"state": "held", "text": each.pod + (", unhealthy" if place < each.unhealthy else "")}
        for each in row.holders
        for place in range(each.gpus)
    ]
    lost = [{"state": "unhealthy", "text": "unhealthy"}] * max(0, row.offered - row.healthy)
    unheld = "unknown" if everyone.reason or everyone.hidden else "free"
    slots = [*held, *[{"state": unheld, "text": unheld}] * row.free, *lost]
    return {**asdict(row), "free": None if row.free and unheld == "unknown" else row.free, "slots": slots}


def _amount(quantity: object) -> float | None:
    try:
        return amount(quantity)
    except ValueError:
        return None


def _resource(name: str, status: Mapping[str, Any], pods: Sequence[Object], usage: Mapping[str, str]) -> dict[str, Any]:
    """Use, requests and what pods can have, in cores or bytes."""
    total = _amount((status.get("allocatable") or {}).get(name))
    used = _amount(usage.get(name))
    asked = sum(_amount(each) or 0.0 for pod in pods for each in _requests(pod, name))
    share = used / total if used is not None and total else None
    said = size if name == "memory" else lambda value: number(value, 3)
    return {"used": used, "requested": asked, "total": total, "share": share,
            "shown": f"{said(used)} of {said(total)}", "shown_share": percent(share, 0),
            "shown_requested": said(asked)}  # fmt: skip


def _requests(pod: Object, name: str) -> list[object]:
    requests = [(each.get("resources") or {}).get("requests") or {} for each in pod["spec"].get("containers") or []]
    return [each[name] for each in requests if name in each]


def _by_node(pods: Sequence[Object]) -> dict[str, list[Object]]:
    """Node -> its pods that have not ended."""
    found: dict[str, list[Object]] = {}
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            found.setdefault(str(pod["spec"].get("nodeName") or ""), []).append(pod)
    return found


def _taint(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _order(found: Object) -> tuple[bool, str]:
    return CONTROL_PLANE not in (found["metadata"].get("labels") or {}), found["metadata"]["name"]


PAGE = Page("nodes", "/nodes", read, build)
