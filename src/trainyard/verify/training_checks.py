"""Checks of a training: its progress or its recorded result, and its objects in the cluster.

Parts: the progress of a running training; its network policies; the training as a whole. A running training makes
steps, or is still within its time to start. The policies deny all traffic by default, and none opens the run's pods to
everyone. If a training has ended, its recorded result counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from ..core.untrusted import number
from ..kube.api import Object
from ..trainings.log_events import DEVICE_FIELDS, ERROR_RATES, SUCCESSES, Event, idle_gpus, last
from ..trainings.names import NAME_LABEL, PROBE_LABEL, TENSORBOARD_LABEL
from ..trainings.pod_places import newest, pod_state
from ..trainings.record import FAILED, RUNNING, STOPPED
from ..trainings.record import UNKNOWN as UNPROVEN
from ..trainings.roles import TOPOLOGIES, clean_exits
from ..trainings.run_state import attempt_of, condition, created
from ..trainings.run_state import ended as ended_as
from ..why.answer import sentence
from .observation import RunSeen, Unread, Wanted
from .verdict import FAIL, PASS, UNKNOWN, Check

LEFT_ALONE = "its description differs from the site's, and it was left unchanged"


def progress(want: Wanted, seen: RunSeen, now: datetime, *, left_alone: bool = False) -> Check:
    """Check that the last step of a running training is younger than `stall_timeout`.

    Before the first step, check that its youngest pod is younger than the time to start. A user's program, which has no
    `train_steps`, may validate or load data for any time, so it has no limit for a step.

    :param now: by the clock of this machine; times of steps come from the clock of their node.
    """
    for part in (seen.pods, seen.said):
        if isinstance(part, Unread):
            return Check("training", UNKNOWN, part.reason, part.settles)
    pods = [] if isinstance(seen.pods, Unread) else seen.pods
    said = [] if isinstance(seen.said, Unread) else seen.said
    live = None if isinstance(seen.live, Unread) else seen.live
    wrong, well = _judged(want, live, pods, said, now)
    head = f"{want.name} is running" + (f" ({LEFT_ALONE})" if left_alone else "")
    return Check("training", FAIL if wrong else PASS, f"{head}: {wrong or well}")


def _judged(
    want: Wanted, live: Object | None, pods: Sequence[Object], said: Sequence[Event], now: datetime
) -> tuple[str, str]:
    """Return (fault, description) of the progress, one of them empty; both are the same for the same state."""
    states = {place: pod_state(pod) for place, pod in newest(pods).items()}
    waiting = [f"{place} {why}" for place, (state, why) in states.items() if state == "waiting"]
    step = last(said, "step")
    if isinstance(step.get("time"), int | float):
        if want.train_steps is None:
            return "", f"it has reported step {step.get('step', '?')}"
        if now.timestamp() - step["time"] > want.stall_timeout:
            parts = [f"it has made no step for more than stall_timeout, {want.stall_timeout:g} s", *waiting]
            return "; ".join(parts), ""
        return "", f"its last step is younger than stall_timeout, {want.stall_timeout:g} s"
    age = now.timestamp() - _youngest(live, pods)
    if waiting or not pods:
        if age > want.start_timeout:
            what = "; ".join(waiting) or "it has no pods"
            return f"not all its pods ran within start_timeout, {want.start_timeout:g} s: {what}", ""
        return "", "it is starting"
    if said and want.train_steps is not None and age > want.start_timeout + want.stall_timeout:
        return f"it has made no step within {want.start_timeout + want.stall_timeout:g} s of its start", ""
    return "", "it is starting" if said else "all its pods run, and it reports no steps"


def _youngest(live: Any, pods: Sequence[Object]) -> float:
    """Return when the youngest part of the run was created, in seconds since the epoch: a restart resets the time."""
    times = [created(live), *(pod["metadata"]["creationTimestamp"] for pod in pods)]
    return max(datetime.fromisoformat(each).timestamp() for each in times if each)


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


RECEIPT_FIELDS = (
    "workload",
    "topology",
    "attempt",
    "description_hash",
    "result",
    "why",
    "steps",
    "train_steps",
    "stopped_early",
    "steps_per_second",
    "seconds",
    "accuracy",
    "accuracy_bound",
    *ERROR_RATES,
    *DEVICE_FIELDS,
    "apply_to_completion_seconds",
    "restarts",
    "isolation",
    "roles",
)
"""Fields that the receipt copies from the recorded result."""


def training(want: Wanted, seen: RunSeen, site_bound: float = 0.0) -> Check:
    """Check that the run ended well: all steps are done unless it stopped early, the accuracy reaches its bound, and
    each role exited cleanly."""
    for part in (seen.result, seen.live):
        if isinstance(part, Unread):
            return Check("training", UNKNOWN, part.reason, part.settles)
    live, result, run = seen.live, seen.record, want.name
    if not result and live is None:
        return Check("training", UNKNOWN, f"no result of the training {run} is recorded")
    if result.get("result", RUNNING) == RUNNING:
        return _unrecorded(run, live)
    if result["result"] == STOPPED:
        return Check("training", FAIL, f"{run} was stopped{_how_far(result)}")
    if result["result"] == UNPROVEN:
        return Check("training", UNKNOWN, f"{run} has ended, but its result is unknown: {result.get('why')}")
    if result["result"] == FAILED:
        why = str(result.get("why") or "the reason is not recorded")
        return Check("training", FAIL, f"{run} failed{_how_far(result)}: {why.splitlines()[0]}{_cause(result)}")
    wrong = [*_other_description(want, result)]
    if result["result"] not in SUCCESSES:
        wrong.append(f"the result of the run is {result['result']}")
    steps, wanted = result.get("steps"), result.get("train_steps")
    short = wanted and isinstance(steps, int) and steps < wanted
    if not isinstance(steps, int) or (short and not result.get("stopped_early")):
        wrong.append(f"{steps} of {wanted} steps were done")
    asked = number(result.get("accuracy_bound")) or 0.0
    if want.accuracy_bound is not None:
        asked = max(asked, want.accuracy_bound, site_bound)
    accuracy = result.get("accuracy")
    if asked and (not isinstance(accuracy, int | float) or not accuracy >= asked):
        wrong.append(f"the accuracy is {accuracy}, but the bound is {asked:g}")
    wrong += bad_exits(result.get("roles") or {}, str(result.get("topology", want.topology)))
    if wrong:
        return Check("training", FAIL, "; ".join(wrong))
    learned = f"accuracy {accuracy:.4f}, bound {asked:g}" if asked else "no accuracy bound was set"
    after = f" after {steps} steps" if steps else ""  # A user's own program may report none.
    idle = idle_gpus(result)
    on = f"; it used the CPU: {idle}" if idle else ""
    return Check("training", PASS, f"{run} ended{after}, {learned}{on}")


def _other_description(want: Wanted, result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fault that the record belongs to another description; old records contain no hash of it."""
    recorded, steps = result.get("description_hash"), result.get("train_steps")
    other_steps = want.train_steps is not None and steps != want.train_steps
    if other_steps or (recorded and want.description_hash and recorded != want.description_hash):
        ran = f"{str(recorded or 'unknown')[:12]}, {steps} steps"
        asked = f"{want.description_hash[:12] or 'unknown'}, {want.train_steps} steps"
        yield (
            f"the record of {want.name} belongs to another description ({ran}) than the site's ({asked}): "
            "run site.yml, or train.yml with this run"
        )


def _unrecorded(run: str, live: Object | Any) -> Check:
    """Judge the end of a run that no playbook has followed, from its object in the cluster."""
    if failed := condition(live, "Failed"):
        why = f"{failed.get('reason')}: {failed.get('message')}"
        return Check("training", FAIL, f"{run} failed while no playbook followed it: {why}")
    if ended_as(live):
        return Check("training", UNKNOWN, f"{run} has ended, but its result is not recorded: run its playbook again")
    return Check(
        "training", UNKNOWN, f"{run} is no longer running, and the reason is not recorded: run its playbook again"
    )


def _cause(result: Mapping[str, Any]) -> str:
    """Return the recorded cause of a failure, as `trainyard why` reports it; empty if none was found."""
    cause = result.get("cause")
    found = cause.get("findings") if isinstance(cause, Mapping) else None
    first = found[0] if isinstance(found, list) and found else None
    words = sentence(first) if isinstance(first, Mapping) else ""
    return f"; {words}" if words else ""


def _how_far(result: Mapping[str, Any]) -> str:
    if "steps" not in result:
        return ""
    return f" at step {result['steps']}" + (f" of {result['train_steps']}" if result.get("train_steps") else "")


def isolation(run: str, result: Mapping[str, Any]) -> Check:
    """Check that the isolation probe could not connect to a ps port during the run, as its record shows."""
    evidence = result.get("isolation") or {}
    answer = {"True": PASS, "False": FAIL}.get(str(evidence.get("stranger_blocked")), UNKNOWN)
    return Check("isolation", answer, str(evidence.get("detail") or f"no isolation probe of {run} is recorded"))


def bad_exits(places: Mapping[str, int | str], topology: str = "parameter_server") -> list[str]:
    """Return the faults of pods that did not end cleanly.

    :param places: place such as `worker-1` -> exit code, or `stopped` if the pod was deleted before its exit was seen.
    """
    shape = TOPOLOGIES[topology]
    present = {place.rpartition("-")[0] for place in places}
    deciding = next((f"{name}-0" for name, kind in shape.roles.items() if kind.decides and name in present), "")
    wrong = [
        f"{place} ended with {code}"
        for place, code in places.items()
        if code not in clean_exits(topology, place, deciding)
    ]
    return wrong if deciding in places else [*wrong, "the exit of the deciding pod is not recorded"]


def released(run: str, pods: Sequence[Object]) -> Check:
    """Check that no pod of the run still holds resources."""
    held = sorted(
        pod["metadata"]["name"] for pod in pods if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    )
    if held:
        return Check("released", FAIL, f"pods of {run} still exist: {', '.join(held)}", settles=True)
    return Check("released", PASS, f"no pod of {run} holds resources")


def training_warnings(want: Wanted, seen: RunSeen, *, left_alone: bool = False) -> list[str]:
    """Return a warning that the verdict does not cover the result of a run that is still running."""
    if not seen.goes_on:
        return []
    endless = seen.record.get("train_steps") == 0
    left = f" {LEFT_ALONE};" if left_alone else ""
    known = "has no end" if endless else "is running"
    return [f"the run {want.name} {known};{left} its progress was judged, but not its result or its isolation"]


def summary(want: Wanted, seen: RunSeen, *, left_alone: bool = False) -> dict[str, Any]:
    """Return a training's entry in the receipt; it stays the same while the same run is running.

    :return: name, namespace, `result` (`unknown` if there is no record), other recorded fields, and `left_alone`.
    """
    result = seen.record
    # The progress of a running training is in the measured part of the receipt.
    fields = RECEIPT_FIELDS[:3] if seen.goes_on else RECEIPT_FIELDS
    known = {name: result[name] for name in fields if name in result}
    named = {"name": want.name, "namespace": want.namespace}
    if seen.goes_on and not isinstance(seen.live, Unread):
        attempt = attempt_of(seen.live)
        return {**named, **known, "attempt": attempt, "result": RUNNING, "left_alone": left_alone}
    return {**named, "result": UNKNOWN, **known, "left_alone": False}
