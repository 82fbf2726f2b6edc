"""The check of the network policies round a training: all is denied, except to the run's own pods."""

from __future__ import annotations

from collections.abc import Sequence

from ..kube.api import Object
from ..trainings.names import NAME_LABEL, TENSORBOARD_LABEL
from ..trainings.probe_pods import PROBE_LABEL
from .verdict import FAIL, PASS, Check

RULES = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}
"""Direction of a network policy's rules -> the names of the rules and of their peers."""


def network_policies(run: str, policies: Sequence[Object]) -> Check:
    """The namespace denies what no policy admits, in both directions, and none opens the run's pods to everybody."""
    mine = [policy for policy in policies if _selects(policy, run)]
    wrong = []
    for direction in RULES:
        if not any(_denies_all(policy, direction) for policy in policies):
            wrong.append(f"no policy denies all {direction.lower()} by default")
    if not any((policy["spec"].get("podSelector") or {}).get("matchLabels") for policy in mine):
        wrong.append(f"no policy is there for the pods of {run}")
    for policy in mine:
        for direction in RULES:
            if _open(policy, direction):
                wrong.append(f"policy {policy['metadata']['name']} has {direction.lower()} open to everybody")
    if wrong:
        return Check("network_policies", FAIL, "; ".join(wrong))
    return Check("network_policies", PASS, f"all is denied by default, and admitted to {run} by its own policy only")


def _is_about(policy: Object, direction: str) -> bool:
    """Without `policyTypes`, a policy is about ingress, and about egress where it has rules for that."""
    spec = policy["spec"]
    return direction in (spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _denies_all(policy: Object, direction: str) -> bool:
    spec = policy["spec"]
    return not spec.get("podSelector") and _is_about(policy, direction) and not spec.get(RULES[direction][0])


def _selects(policy: Object, run: str) -> bool:
    """Does the policy hold for pods of the run; label expressions are read as holding, which is the careful side."""
    labels = (policy["spec"].get("podSelector") or {}).get("matchLabels") or {}
    # The pods that probe a run from outside, or show its files, have these labels, and those of runs have them not.
    return not {PROBE_LABEL, TENSORBOARD_LABEL} & labels.keys() and labels.get(NAME_LABEL, run) == run


def _open(policy: Object, direction: str) -> bool:
    """Does one of the policy's rules admit any peer: it names none, or one that selects every address or pod."""
    rules, peers = RULES[direction]
    found = (policy["spec"].get(rules) or []) if _is_about(policy, direction) else []
    return any(not rule.get(peers) or any(_anybody(peer) for peer in rule[peers]) for rule in found)


def _anybody(peer: Object) -> bool:
    block = (peer.get("ipBlock") or {}).get("cidr", "")
    return block.endswith("/0") or ("namespaceSelector" in peer and not peer["namespaceSelector"])
