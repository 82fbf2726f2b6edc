"""The checks of the training: what its role recorded when the run ended, and what the API server shows now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..kube.api import Object
from ..training.names import NAME_LABEL
from ..training.record import RUNNING
from ..training.roles import TOPOLOGIES, clean_exits
from .cluster import judge
from .reading import Observation
from .verdict import FAIL, PASS, UNKNOWN, Check

RECEIPT_FIELDS = (
    "name",
    "result",
    "steps",
    "train_steps",
    "stopped_early",
    "steps_per_second",
    "seconds",
    "accuracy",
    "accuracy_bound",
    "apply_to_completion_seconds",
    "restarts",
    "isolation",
    "roles",
)
"""What the receipt takes over from the recorded result."""


RULES = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}
"""Direction of a network policy's rules -> the names of the rules and of their peers."""


def training_checks(run: str, bound: float, seen: Observation) -> list[Check]:
    """The checks of one training.

    :param run: its name.
    :param bound: accuracy that the site asks for; the run's own bound counts where it is higher.
    """
    return [
        judge("training", seen.result, lambda result: training(run, bound, result)),
        judge("isolation", seen.result, lambda result: isolation(run, result)),
        judge("network_policies", seen.policies, lambda policies: network_policies(run, policies)),
        judge("released", seen.run_pods, lambda pods: released(run, pods)),
    ]


def training(run: str, bound: float, result: Mapping[str, Any]) -> Check:
    """The run ended well: all steps done, or as many as its patience wanted, accuracy at its bound, every role's exit
    clean."""
    if not result:
        return Check("training", UNKNOWN, f"no result of the training {run} is recorded")
    if result.get("result") == RUNNING:
        return Check("training", UNKNOWN, f"the training {run} goes on")
    wrong = []
    if result.get("result") not in ("passed", "no_bound"):
        wrong.append(f"the run says {result.get('result', 'nothing')}")
    steps, wanted = result.get("steps"), result.get("train_steps")
    short = wanted and isinstance(steps, int) and steps < wanted
    if not isinstance(steps, int) or (short and not result.get("stopped_early")):
        wrong.append(f"{steps} of {wanted} steps were done")
    asked = max(bound, float(result.get("accuracy_bound") or 0))
    accuracy = result.get("accuracy")
    if asked and (not isinstance(accuracy, int | float) or not accuracy >= asked):
        wrong.append(f"the accuracy is {accuracy}, the bound {asked:g}")
    wrong += bad_exits(result.get("roles") or {}, str(result.get("topology", "parameter_server")))
    if wrong:
        return Check("training", FAIL, "; ".join(wrong))
    learned = f"accuracy {accuracy:.4f}, bound {asked:g}" if asked else "no accuracy bound was asked for"
    return Check("training", PASS, f"{run} ended after {steps} steps, {learned}")


def isolation(run: str, result: Mapping[str, Any]) -> Check:
    """During the run a foreign pod's connection to a ps port was blocked; the run recorded how that was tried."""
    evidence = result.get("isolation") or {}
    answer = {"True": PASS, "False": FAIL}.get(str(evidence.get("stranger_blocked")), UNKNOWN)
    return Check(
        "isolation", answer, str(evidence.get("detail") or f"no attempt of a foreign pod on {run} is recorded")
    )


def bad_exits(places: Mapping[str, int | str], topology: str = "parameter_server") -> list[str]:
    """Pods that did not end as they should.

    :param places: such as `worker-1`, to exit code, or `stopped` if the pod went before its exit was seen.
    """
    shape = TOPOLOGIES[topology]
    present = {place.rpartition("-")[0] for place in places}
    deciding = next((f"{name}-0" for name, kind in shape.roles.items() if kind.decides and name in present), "")
    wrong = [
        f"{place} ended with {code}"
        for place, code in places.items()
        if code not in clean_exits(topology, place, deciding)
    ]
    return wrong if deciding in places else [*wrong, "the exit that decides is not recorded"]


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


def released(run: str, pods: Sequence[Object]) -> Check:
    """No pod of the run holds resources any more."""
    held = sorted(
        pod["metadata"]["name"] for pod in pods if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    )
    if held:
        return Check("released", FAIL, f"pods of {run} are still there: {', '.join(held)}", settles=True)
    return Check("released", PASS, f"no pod of {run} holds resources")


def summary(result: Object | Any) -> dict[str, Any]:
    """The part of the recorded result that the receipt carries; empty if there is none."""
    if not isinstance(result, Mapping):
        return {}
    return {name: result[name] for name in RECEIPT_FIELDS if name in result}


def _is_about(policy: Object, direction: str) -> bool:
    """Without `policyTypes`, a policy is about ingress, and about egress where it has rules for that."""
    spec = policy["spec"]
    return direction in (spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _denies_all(policy: Object, direction: str) -> bool:
    spec = policy["spec"]
    return not spec.get("podSelector") and _is_about(policy, direction) and not spec.get(RULES[direction][0])


def _selects(policy: Object, run: str) -> bool:
    """Does the policy hold for pods of the run; label expressions are read as holding, which is the careful side."""
    selector = policy["spec"].get("podSelector") or {}
    return (selector.get("matchLabels") or {}).get(NAME_LABEL, run) == run


def _open(policy: Object, direction: str) -> bool:
    """Does one of the policy's rules admit any peer: it names none, or one that selects every address or pod."""
    rules, peers = RULES[direction]
    found = (policy["spec"].get(rules) or []) if _is_about(policy, direction) else []
    return any(not rule.get(peers) or any(_anybody(peer) for peer in rule[peers]) for rule in found)


def _anybody(peer: Object) -> bool:
    block = (peer.get("ipBlock") or {}).get("cidr", "")
    return block.endswith("/0") or ("namespaceSelector" in peer and not peer["namespaceSelector"])
