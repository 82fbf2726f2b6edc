"""Page of the nodes: their state, versions, resource usage and GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ...kube.api import Object
from ...kube.placement import amount
from ...kube.reads import Reader, Unread, listing, must, objects
from ...trainings.gpu_requests import Holder, has_gpus, holders
from ...trainings.gpu_requests import row as gpu_row
from .everyone import Everyone, everyone
from .page import Page, Params
from .words import ago, duration, link, number, percent, plural, size

USAGE = "metrics.k8s.io/v1beta1"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True)
class Answers:
    """The data of all nodes.

    :param everyone: pods that the user may see.
    :param usage: node -> its measured usage; an `Unread` has the reason if there is none.
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
    """Build the view: `nodes`, `summary`, and `unread`, sentences on missing data."""
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
        said = f"{unknown} unknown" if unknown else f"{slots.count('free')} free"
        summary.append(f"{plural(offered, 'GPU')}, {said}")
    return {"nodes": rows, "unread": unread, "summary": summary}


def node(
    found: Object, answers: Answers, mine: Sequence[Object], holding: Mapping[str, Sequence[Holder]], now: datetime
) -> dict[str, Any]:
    """Return the entry of a node.

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
    """Return the GPUs of a node as slots: held by a pod, free, unknown, or unhealthy; None if it has none.

    The cluster knows how many GPUs a pod holds but not which, so the order of the slots has no meaning. If a pod that
    the user may not see could hold a GPU, that GPU is unknown, and so is the number of `free` ones.
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
    """Return usage, requests and allocatable amount of a resource, in cores or bytes."""
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
    """Return node -> its pods that have not ended."""
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
