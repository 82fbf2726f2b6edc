"""What rules about pods without a node have in common."""

from __future__ import annotations

from ..trainings.places import role_of
from .answer import Evidence
from .spots import Placement, placements
from .view import IMPORT, View

EFFECT = "{} cannot be placed"


def of(view: View, code: str) -> list[Placement]:
    """The pods without a node of one code."""
    return [each for each in placements(view) if each.code == code]


def said(each: Placement) -> list[Evidence]:
    """What the scheduler says, without its word on preemption."""
    text = each.said.partition(" preemption:")[0].rstrip(" .")
    return [Evidence("scheduler", "", since(each), f'"{text}"')] if text else []


def since(each: Placement) -> str:
    """Since when the scheduler has found no node, as the cluster writes times."""
    conditions = (each.pod.get("status") or {}).get("conditions") or []
    return next((str(one.get("lastTransitionTime") or "") for one in conditions if one["type"] == "PodScheduled"), "")


def role(each: Placement) -> str:
    """The role whose settings the pod has, as workloads_trainings names it."""
    return role_of(each.pod) if each.place != IMPORT else IMPORT
