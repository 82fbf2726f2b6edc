"""Flags and files of a run, read from its live object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kube.api import Object
from .names import CONTAINER
from .places import decider


def knobs(live: Object | None) -> dict[str, str]:
    """Return the flags of the deciding pod, except those of its files and its attempt."""
    container = _container(live)
    given = [str(each) for each in container.get("args") or []]
    flags = dict(each[2:].partition("=")[::2] for each in given if each.startswith("--") and "=" in each)
    return {name: value for name, value in flags.items() if name not in ("data_dir", "log_dir", "attempt", "resume")}


def files(live: Object | None) -> dict[str, str]:
    """Return the claim with a run's files and its folder there; empty if it has none."""
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in _pod(live).get("volumes") or []
        if "persistentVolumeClaim" in volume
    }
    if "logs" not in claims:
        return {}
    flags = [str(each) for each in _container(live).get("args") or []]
    folder = next((each.partition("=")[2] for each in flags if each.startswith("--log_dir=")), "/logs")
    return {"claim": str(claims["logs"]), "folder": folder}


def _container(live: Object | None) -> Mapping[str, Any]:
    containers = _pod(live).get("containers") or []
    return next((each for each in containers if each.get("name") == CONTAINER), {})


def _pod(live: Object | None) -> Mapping[str, Any]:
    """Return the spec of the pods of the deciding role."""
    spec = (live or {}).get("spec") or {}
    role = decider(live).rpartition("-")[0]
    jobs = {each["name"]: each["template"] for each in spec.get("replicatedJobs") or ()}
    if jobs:
        spec = (jobs.get(role) or {}).get("spec") or {}
    return ((spec.get("template") or {}).get("spec")) or {}
