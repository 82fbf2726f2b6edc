"""Pages of the receipts: a list of the last ten, and one receipt with all checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...core import untrusted
from ...kube.api import Object
from ...kube.reads import Get, Reader, listing, must, objects, path
from .page import Page, Params
from .words import ago, clock, duration, link, number, percent, whole

NAMESPACE = "trainyard-console"
LABEL = "trainyard.dev/receipt"
KEY = "receipt.json"
TONES = {"pass": "good", "fail": "bad", "unknown": "wait"}
_ORDER = {"fail": 0, "unknown": 1, "pass": 2}


def read(params: Params) -> Reader[Sequence[Object]]:
    answer = yield listing("v1", "configmaps", NAMESPACE, labels=LABEL)
    return list(must(objects(answer)))


def build(found: Sequence[Object], params: Params, now: datetime) -> dict[str, Any]:
    """Build the view: `receipts`, the newest first."""
    newest = sorted(found, key=lambda each: str(each["metadata"]["name"]), reverse=True)
    return {"receipts": [_entry(each, now) for each in newest]}


def read_one(params: Params) -> Reader[Object]:
    answer: Object = must((yield Get(path("v1", "configmaps", NAMESPACE, params["name"]))))
    return answer


def build_one(found: Object, params: Params, now: datetime) -> dict[str, Any]:
    """Build the view: the entry of the list, failed checks before passed ones, and the rest of the receipt."""
    receipt = parsed(found)
    checks = [
        {**_texts(each, "name", "run", "result", "detail"), "tone": TONES.get(str(each.get("result")), "wait")}
        for each in _mappings(receipt, "checks")
    ]
    return {
        **_entry(found, now),
        "checks": sorted(checks, key=lambda each: _ORDER.get(each["result"], 1)),
        "warnings": [str(each) for each in _list(receipt, "warnings")],
        "nodes": [
            {**_texts(each, "name", "kubelet", "containerd"), "ready": bool(each.get("ready"))}
            for each in _mappings(receipt, "nodes")
        ],
        "trainings": [_training(each) for each in _mappings(receipt, "trainings")],
        "versions": _pairs(receipt.get("versions")),
        "measured": _pairs(receipt.get("measured")),
    }


def parsed(found: Object) -> dict[str, Any]:
    """Parse the receipt of a ConfigMap; empty if it is none."""
    try:
        receipt = json.loads((found.get("data") or {}).get(KEY, ""))
    except ValueError:
        return {}
    return receipt if isinstance(receipt, dict) else {}


def _entry(found: Object, now: datetime) -> dict[str, Any]:
    receipt, name = parsed(found), found["metadata"]["name"]
    results = [str(each.get("result")) for each in _mappings(receipt, "checks")]
    written = receipt.get("written_at") or found["metadata"].get("creationTimestamp")
    verdict = str(receipt.get("verdict") or "unreadable")
    return {
        "name": name,
        "href": link("receipts", name),
        "verdict": verdict,
        "tone": TONES.get(verdict, "bad"),
        "written": clock(written),
        "age": duration(ago(written, now)),
        "seconds": "" if (seconds := _number(receipt.get("wall_seconds"))) is None else duration(seconds),
        "passed": results.count("pass"),
        "failed": [str(each.get("name")) for each in _mappings(receipt, "checks") if each.get("result") == "fail"],
        "unknown": results.count("unknown"),
        "warned": len(_list(receipt, "warnings")),
    }


def _training(each: Mapping[str, Any]) -> dict[str, str]:
    accuracy, bound = (_number(each.get(name)) for name in ("accuracy", "accuracy_bound"))
    return {
        **_texts(each, "name", "workload", "result", "why", "compute"),
        "tone": {"passed": "good", "no_bound": "good", "failed": "bad"}.get(str(each.get("result")), "wait"),
        "accuracy": percent(accuracy),
        "bound": percent(bound) if bound else "",
        "steps": whole(_number(each.get("steps"))),
        "rate": number(_number(each.get("steps_per_second")), 3),
        "seconds": duration(_number(each.get("seconds"))),
    }


def _number(value: object) -> float | None:
    return None if isinstance(value, str) else untrusted.number(value)


def _texts(found: Mapping[str, Any], *names: str) -> dict[str, str]:
    return {name: "" if found.get(name) is None else str(found[name]) for name in names}


def _list(receipt: Mapping[str, Any], name: str) -> list[Any]:
    return receipt[name] if isinstance(receipt.get(name), list) else []


def _mappings(receipt: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [each for each in _list(receipt, name) if isinstance(each, dict)]


def _pairs(found: object) -> list[dict[str, str]]:
    pairs = found if isinstance(found, dict) else {}
    return [{"name": str(name), "value": _said(value)} for name, value in sorted(pairs.items())]


def _said(value: object) -> str:
    return number(value) if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)


LIST = Page("receipts", "/receipts", read, build)
ONE = Page("receipt", "/receipts/{name}", read_one, build_one)
