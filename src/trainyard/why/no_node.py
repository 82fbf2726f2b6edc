"""Helpers of the rules about pods without a node."""

from __future__ import annotations

from ..trainings.places import role_of
from .answer import Evidence
from .spots import Placement, placements
from .view import IMPORT, View

EFFECT = "{} cannot be placed"


def of(view: View, code: str) -> list[Placement]:
    """Return the pods without a node that wait for the reason of this code."""
    return [each for each in placements(view) if each.code == code]


def said(each: Placement) -> list[Evidence]:
    """Return the scheduler's message, without its part about preemption."""
    text = each.said.partition(" preemption:")[0].rstrip(" .")
    return [Evidence("scheduler", "", since(each), f'"{text}"')] if text else []


def since(each: Placement) -> str:
    """Return the time since which the scheduler has found no node, in the cluster's format."""
    conditions = (each.pod.get("status") or {}).get("conditions") or []
    return next((str(one.get("lastTransitionTime") or "") for one in conditions if one["type"] == "PodScheduled"), "")


def role(each: Placement) -> str:
    """Return the role of the pod, as named in `workloads_trainings`."""
    return role_of(each.pod) if each.place != IMPORT else IMPORT
