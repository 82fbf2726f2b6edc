"""The check of the network policies of a training: everything is denied except to the run's own pods."""

from __future__ import annotations

from collections.abc import Sequence

from ..kube.api import Object
from ..trainings.names import NAME_LABEL, TENSORBOARD_LABEL
from ..trainings.probe_pods import PROBE_LABEL
from .verdict import FAIL, PASS, Check

RULES = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}
"""Direction of a network policy -> field names of its rules and of their peers."""


def network_policies(run: str, policies: Sequence[Object]) -> Check:
    """Check that the namespace denies all traffic by default and no policy opens the run's pods to everyone."""
    mine = [policy for policy in policies if _selects(policy, run)]
    wrong = []
    for direction in RULES:
        if not any(_denies_all(policy, direction) for policy in policies):
            wrong.append(f"no policy denies all {direction.lower()} by default")
    if not any((policy["spec"].get("podSelector") or {}).get("matchLabels") for policy in mine):
        wrong.append(f"no policy selects the pods of {run}")
    for policy in mine:
        for direction in RULES:
            if _open(policy, direction):
                wrong.append(f"policy {policy['metadata']['name']} opens {direction.lower()} to everyone")
    if wrong:
        return Check("network_policies", FAIL, "; ".join(wrong))
    return Check("network_policies", PASS, f"all is denied by default; only the policy of {run} admits traffic to it")


def _is_about(policy: Object, direction: str) -> bool:
    """Return whether a policy covers a direction. Without `policyTypes`: ingress, and egress if it has such rules."""
    spec = policy["spec"]
    return direction in (spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _denies_all(policy: Object, direction: str) -> bool:
    spec = policy["spec"]
    return not spec.get("podSelector") and _is_about(policy, direction) and not spec.get(RULES[direction][0])


def _selects(policy: Object, run: str) -> bool:
    """Return whether the policy selects pods of the run; label expressions count as a match, to be safe."""
    labels = (policy["spec"].get("podSelector") or {}).get("matchLabels") or {}
    # Only isolation probes and TensorBoard pods have these labels, pods of runs do not.
    return not {PROBE_LABEL, TENSORBOARD_LABEL} & labels.keys() and labels.get(NAME_LABEL, run) == run


def _open(policy: Object, direction: str) -> bool:
    """Return whether a rule of the policy admits any peer: it names none, or one that selects all addresses or pods."""
    rules, peers = RULES[direction]
    found = (policy["spec"].get(rules) or []) if _is_about(policy, direction) else []
    return any(not rule.get(peers) or any(_anybody(peer) for peer in rule[peers]) for rule in found)


def _anybody(peer: Object) -> bool:
    block = (peer.get("ipBlock") or {}).get("cidr", "")
    return block.endswith("/0") or ("namespaceSelector" in peer and not peer["namespaceSelector"])
