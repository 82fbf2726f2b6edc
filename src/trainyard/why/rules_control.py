"""Rules for the control plane parts that create and schedule pods, and for refusals by admission."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..kube.api import Object, describe
from ..trainings.run_state import created
from .answer import Evidence
from .rule import Hit
from .snapshot import JOBSET_SYSTEM, LEASES, SYSTEM
from .view import View, at, event_time, ready

WAIT_SECONDS = 8.0
"""Maximum seconds that a running controller needs to act on a new object."""
LEASE_SECONDS = 40.0
"""Age of a stale lease. Leaders of the control plane renew every 2 s and lose it after 15 s (Kubernetes defaults)."""
EFFECT = "the pods of {} are not created"


def scheduler_down(view: View) -> Iterator[Hit]:
    """No scheduler is running, so pods get no node."""
    for place, pod in view.waiting.items():
        conditions = (pod.get("status") or {}).get("conditions") or []
        said = any(each["type"] == "PodScheduled" for each in conditions)
        stale = pod["spec"].get("nodeName") or said or pod["spec"].get("schedulingGates")
        if stale or view.age(created(pod)) < WAIT_SECONDS:
            continue
        evidence = _absent(view, "kube-scheduler")
        if evidence:
            yield Hit(
                place,
                "no scheduler is running",
                "{} cannot be scheduled",
                evidence,
                "check crictl ps -a on the control plane nodes and /etc/kubernetes/manifests/kube-scheduler.yaml",
            )


def _absent(view: View, name: str) -> list[Evidence]:
    """Return evidence that a leader of the control plane is not running; empty if it is running."""
    pods = view.system(SYSTEM, component=name)
    if not any(map(ready, pods)):
        text = "none of its pods is Ready" if pods else "it has no pod"
        return [Evidence("pod", f"{SYSTEM}/{name}", "", text)]
    for lease in view.part("leases"):
        if lease["metadata"]["name"] != name or name not in LEASES:
            continue
        renewed = str((lease.get("spec") or {}).get("renewTime") or "")
        if at(renewed) and view.age(renewed) > LEASE_SECONDS:
            text = f"it has not renewed its lease for {view.age(renewed):.0f} s"
            return [Evidence("controller", name, renewed, text)]
    return []


def controller_down(view: View) -> Iterator[Hit]:
    """The JobSet controller or the controller manager is not running, so no pods are created."""
    live = view.live
    if live is None or not view.goes_on:
        return
    run = view.snapshot.run
    if live["kind"] == "JobSet" and _jobset_waits(view, live):
        pods = view.system(JOBSET_SYSTEM)
        if not any(map(ready, pods)):
            text = "none of its pods is Ready" if pods else "it has no pod"
            yield Hit(
                run,
                "the JobSet controller is not running",
                EFFECT,
                [Evidence("pod", f"{JOBSET_SYSTEM}/jobset-controller-manager", "", text), *_refusals(view, _WEBHOOK)],
                "check kubectl get pods -n jobset-system; run site.yml to deploy it again",
            )
            return
    if _missing(view) and not _refusals(view) and _long(view) and (evidence := _absent(view, LEASES[1])):
        yield Hit(
            run,
            "the controller manager is not running",
            EFFECT,
            evidence,
            "check crictl ps -a on the control plane nodes and /etc/kubernetes/manifests/kube-controller-manager.yaml",
        )


def _jobset_waits(view: View, live: Object) -> bool:
    """Return whether the run waits for the JobSet controller: Jobs are missing or failed, or its webhook is down."""
    wanted = len(live["spec"].get("replicatedJobs") or ())
    mine = _made(view)
    old = view.age(created(live)) >= WAIT_SECONDS
    over = any(_is_over(each) for each in mine)
    return (old and len(mine) < wanted) or bool(_refusals(view, _WEBHOOK)) or (over and old)


def _is_over(job: Object) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Failed" and each["status"] == "True" for each in conditions)


def _made(view: View) -> list[Object]:
    """Return the Jobs that the run's JobSet has created."""
    return [each for each in view.jobs if each["metadata"].get("ownerReferences")]


def _long(view: View) -> bool:
    """Return whether the youngest Job has waited for its pods longer than a running controller needs."""
    times = [created(each) for each in view.jobs] or [view.submitted]
    return view.age(max(times)) >= WAIT_SECONDS


def _missing(view: View) -> list[Object]:
    """Return the active Jobs of the run that have fewer pods than they should."""
    found = []
    for job in view.jobs:
        spec, status = job.get("spec") or {}, job.get("status") or {}
        over = any(
            each["type"] in ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet") and each["status"] == "True"
            for each in status.get("conditions") or []
        )
        if over or spec.get("suspend"):
            continue
        there = sum(int(status.get(name) or 0) for name in ("active", "succeeded", "terminating"))
        if there < int(spec.get("parallelism", 1)):
            found.append(job)
    return found


_WEBHOOK = re.compile(r"failed calling webhook")
_QUOTA = re.compile(r"exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+)")
_SECURITY = re.compile(r"violates PodSecurity \"([^\"]+)\": (.+)")
_KNOWN = (_WEBHOOK, _QUOTA, _SECURITY)


def _refusals(view: View, form: re.Pattern[str] | None = None) -> list[Evidence]:
    """Return evidence that the API server refuses pods or Jobs that are still missing: the last event of each owner.

    :param form: pattern of the message; any message if None.
    """
    found = []
    for owner in _owners(view):
        reported = view.events(owner, "FailedCreate", "JobCreationFailed", "HeadlessServiceCreationFailed")
        if reported and (form is None or form.search(str(reported[-1].get("message", "")))):
            text = str(reported[-1]["message"]).removeprefix("Error creating: ")
            found.append(Evidence("controller", describe(owner).partition(" ")[2], event_time(reported[-1]), text))
    return found


def _owners(view: View) -> list[Object]:
    """Return the objects whose pods or Jobs are missing. Refusals of other objects are in the past."""
    owners = list(_missing(view)) if view.goes_on else []
    live = view.live
    due = len(live["spec"].get("replicatedJobs") or ()) if live and live["kind"] == "JobSet" else 0
    if live and view.goes_on and len(_made(view)) < due:
        owners.append(live)
    if live and view.goes_on and live["kind"] == "Deployment" and not view.pods:
        # The ReplicaSet is not in the snapshot, but its events are, and its name starts with that of the Deployment.
        name = f"{live['metadata']['name']}-"
        about = [each.get("involvedObject") or {} for each in view.part("events")]
        sets = {
            each["uid"]: each
            for each in about
            if each.get("kind") == "ReplicaSet" and str(each.get("name")).startswith(name) and "uid" in each
        }
        owners += [{"kind": "ReplicaSet", "metadata": dict(each)} for each in sets.values()]
    return owners


def webhook_down(view: View) -> Iterator[Hit]:
    """The API server calls a webhook for each pod, and the webhook does not answer."""
    for each in _refusals(view, _WEBHOOK):
        match = re.search(r'failed calling webhook "([^"]+)"', each.text)
        yield Hit(
            _run_of(each),
            f"the webhook {match[1] if match else '?'} does not answer",
            EFFECT,
            [each],
            "check the pods behind it (kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations)",
        )


def quota(view: View) -> Iterator[Hit]:
    """The quota of the namespace allows no more pods of this size."""
    for each in _refusals(view, _QUOTA):
        match = _QUOTA.search(each.text)
        assert match is not None
        name, asked, used, limit = match.groups()
        yield Hit(
            _run_of(each),
            f"the quota {name} allows {limit}; {used} in use, {asked} requested",
            EFFECT,
            [Evidence("quota", name, each.time, each.text)],
            f"raise the quota {name}, or lower requests and replicas in workloads_trainings",
        )


def pod_security(view: View) -> Iterator[Hit]:
    """The pods violate the Pod Security level of the namespace."""
    for each in _refusals(view, _SECURITY):
        match = _SECURITY.search(each.text)
        assert match is not None
        yield Hit(
            _run_of(each),
            f"its pods violate the Pod Security level {match[1]} of the namespace: {match[2]}",
            EFFECT,
            [each],
            "change the pod to comply with the level; trainings of this project comply with restricted",
        )


def pod_refused(view: View) -> Iterator[Hit]:
    """The API server refuses the pods for another reason."""
    for each in _refusals(view):
        if not any(form.search(each.text) for form in _KNOWN):
            yield Hit(_run_of(each), "the API server refuses them", EFFECT, [each], "see the evidence for the reason")


def _run_of(each: Evidence) -> str:
    """Return the name without its namespace: `mnist-worker-0` for `trainings/mnist-worker-0`."""
    return each.object.rpartition("/")[2]
