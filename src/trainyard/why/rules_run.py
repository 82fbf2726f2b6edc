"""Rules about the failure, the end and the silence of a run.

Parts: pods that ended with a failure; the end, the restart and the suspension of a run as a whole. The last rule is for
a run that is active and makes no steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ..core.untrusted import number, whole
from ..kube.api import Object
from ..kube.pod_log import last_lines
from ..trainings import record as records
from ..trainings.log_events import Event, events, last
from ..trainings.pod_places import pod_state
from ..trainings.roles import (
    EXIT_BOUND,
    EXIT_DIVERGED,
    EXIT_REFUSED,
    EXIT_STALLED,
    EXIT_STOPPED,
    EXIT_VOLUME,
    TOPOLOGIES,
    clean_exits,
)
from ..trainings.run_state import condition, counted_restarts, ended, knobs, restarts
from .answer import Evidence, span
from .rule import Hit
from .view import View, at, containers, event_time, terminated

EFFECT = "{} has failed"


def failures(view: View) -> Iterator[tuple[str, Object, dict[str, Any]]]:
    """Yield (place, pod, termination of its container) of each pod whose end matters.

    These are pods of a failed run, pods of a service in a crash loop, and pods of an active run that has made no step
    since their end.
    """
    if ended(view.live) == "Completed" or view.live is None:
        return
    for place, pod in view.waiting.items():
        for each in containers(pod):
            state, before = each.get("state") or {}, (each.get("lastState") or {}).get("terminated")
            if before and (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff":
                yield place, pod, before
    newest = {pod["metadata"]["name"] for pod in view.pods.values()}
    for pod in view.all_pods:
        how = terminated(pod)
        status = pod.get("status") or {}
        if pod_state(pod)[0] != "ended" or not (how or status.get("reason")):
            continue
        place = view.place(pod)
        if how and not _unclean(view, place, int(how.get("exitCode", 0))):
            continue
        then = at(str(how.get("finishedAt") or ""))
        # Times of the cluster are rounded down to seconds: a step in that second may be the last one of this pod.
        over = bool(then and view.steps_since >= then.timestamp() + 1.0)
        if not over and (pod["metadata"]["name"] in newest or view.goes_on):
            yield place, pod, how


def _unclean(view: View, place: str, code: int) -> bool:
    if code == EXIT_STOPPED:
        return False
    if view.topology in TOPOLOGIES and place.rpartition("-")[0] in TOPOLOGIES[view.topology].roles:
        return code not in clean_exits(view.topology, place, view.deciding)
    return code != 0


def _ended_with(view: View, code: int) -> Iterator[tuple[str, Object, dict[str, Any]]]:
    yield from ((place, pod, how) for place, pod, how in failures(view) if how.get("exitCode") == code)


def words(view: View, place: str, pod: Object, how: dict[str, Any]) -> list[Evidence]:
    """Return the exit code of a pod and its error: the last JSON error event, else the last line of its log."""
    text = view.log(pod)
    error = last(events(text), "error")
    line = str(error.get("message") or "") or "".join(last_lines(text, 1))
    when = str(how.get("finishedAt") or "")
    code = f"exit code {how.get('exitCode')}" + (f", {how['reason']}" if how.get("reason", "Error") != "Error" else "")
    return [Evidence("pod", place, when, code), *([Evidence("log", place, when, line[:600])] if line else [])]


def for_memory(how: Mapping[str, Any]) -> bool:
    """Return whether the kernel has killed a container for memory.

    If that happens before the program runs, the reason is StartError, and only the message of runc names the OOM killer
    (libcontainer/process_linux.go).
    """
    return how.get("reason") == "OOMKilled" or "OOM-killed" in str(how.get("message", ""))


def oom_killed(view: View) -> Iterator[Hit]:
    """A container exceeded its memory limit and was killed."""
    for place, pod, how in failures(view):
        if for_memory(how):
            limits = [(each.get("resources") or {}).get("limits") or {} for each in pod["spec"].get("containers") or []]
            limit = next((str(each["memory"]) for each in limits if "memory" in each), "that of its node")
            role = place.rpartition("-")[0]
            yield Hit(
                place,
                f"it ran out of memory and was killed; its limit is {limit}",
                EFFECT,
                words(view, place, pod, how)[:1],
                f"raise {role}.limits.memory in workloads_trainings",
            )


def evicted(view: View) -> Iterator[Hit]:
    """The node has evicted the pod because it was short of a resource."""
    for place, pod, how in failures(view):
        status = pod.get("status") or {}
        if status.get("reason") == "Evicted":
            node = str(pod["spec"].get("nodeName") or "its node")
            said = Evidence("kubelet", place, str(how.get("finishedAt") or ""), str(status.get("message") or ""))
            yield Hit(
                place, f"{node} has evicted it", EFFECT, [said], f"free the resource that the message names on {node}"
            )


def node_refused(view: View) -> Iterator[Hit]:
    """The node has refused the pod, or has ended it because the node was shutting down."""
    for place, pod, how in failures(view):
        status = pod.get("status") or {}
        if not how and status.get("reason") != "Evicted":
            node = str(pod["spec"].get("nodeName") or "its node")
            said = Evidence("kubelet", place, "", str(status.get("message") or status["reason"]))
            remedy = f"check journalctl -u kubelet on {node}; for a pod with a GPU also the device plugin's pod there"
            yield Hit(place, f"{node} does not run it: {status['reason']}", EFFECT, [said], remedy)


def _by_code(view: View, code: int, message: str, remedy: str) -> Iterator[Hit]:
    for place, pod, how in _ended_with(view, code):
        yield Hit(place, message, EFFECT, words(view, place, pod, how), remedy)


def disk_full(view: View) -> Iterator[Hit]:
    """The volume of the run's files is full, not writable or damaged (exit code 5)."""
    message = "the volume of its files is full, not writable or damaged"
    remedy = "free space, or fix what its last line names; submitting it again continues from the last checkpoint"
    yield from _by_code(view, EXIT_VOLUME, message, remedy)


def refused_input(view: View) -> Iterator[Hit]:
    """The training refuses its input; its last line gives the reason (exit code 2)."""
    yield from _by_code(view, EXIT_REFUSED, "it refuses its input", "change what it names in workloads_trainings")


def below_bound(view: View) -> Iterator[Hit]:
    """The accuracy is below the bound after all steps (exit code 3)."""
    for place, pod, how in _ended_with(view, EXIT_BOUND):
        end = last(view.said(pod), "end")
        accuracy, bound = end.get("accuracy"), end.get("accuracy_bound")
        known = isinstance(accuracy, int | float) and isinstance(bound, int | float)
        message = f"its accuracy is {accuracy:.4f}, below {bound:g}" if known else "its accuracy is below the bound"
        remedy = "raise train_steps, or lower accuracy_bound, in workloads_trainings"
        yield Hit(place, message, EFFECT, words(view, place, pod, how)[:1], remedy)


def diverged(view: View) -> Iterator[Hit]:
    """A loss or a parameter is not a finite number (exit code 4)."""
    message = "its loss or a parameter is no longer a finite number"
    yield from _by_code(view, EXIT_DIVERGED, message, "lower learning_rate in workloads_trainings")


def stalled(view: View) -> Iterator[Hit]:
    """It made no progress, and its watchdog has ended it (exit code 75)."""
    for place, pod, how in _ended_with(view, EXIT_STALLED):
        error = last(view.said(pod), "error")
        if not error.get("unreachable"):
            seconds = error.get("stalled_seconds")
            after = f" for {span(seconds)}" if isinstance(seconds, int | float) else ""
            remedy = "check trainyard logs of the other roles and their nodes; on a slow machine raise stall_timeout"
            yield Hit(place, f"it made no step{after}, and ended itself", EFFECT, words(view, place, pod, how), remedy)


def deadline(view: View) -> Iterator[Hit]:
    """An attempt did not finish within `timeout`."""
    for job in view.jobs if view.live is not None else ():
        for each in (job.get("status") or {}).get("conditions") or []:
            if each["type"] == "Failed" and each["status"] == "True" and each.get("reason") == "DeadlineExceeded":
                name = job["metadata"]["name"]
                said = Evidence("job", name, str(each.get("lastTransitionTime") or ""), str(each.get("message") or ""))
                yield Hit(
                    view.snapshot.run,
                    "it did not finish within its timeout",
                    EFFECT,
                    [said],
                    "raise timeout in workloads_trainings, or lower train_steps",
                )


def restarts_exhausted(view: View) -> Iterator[Hit]:
    """The run has reached its maximum number of restarts."""
    failed = condition(view.live, "Failed")
    if failed.get("reason") in ("ReachedMaxRestarts", "BackoffLimitExceeded"):
        said = Evidence("controller", "", str(failed.get("lastTransitionTime") or ""), str(failed.get("message") or ""))
        count = counted_restarts(view.live)
        message = f"it was restarted {count} time{'' if count == 1 else 's'}, which is the maximum"
        yield Hit(view.snapshot.run, message, EFFECT, [said], "fix what ended it, then submit it again")


def stopped(view: View) -> Iterator[Hit]:
    """A user has stopped the run; no step is lost."""
    if view.live is not None and view.live["metadata"].get("deletionTimestamp"):
        yield Hit(view.snapshot.run, "it saves a checkpoint and then stops", "{} is being stopped")
    elif view.live is None and view.record.get("result") == records.STOPPED:
        when = str(view.record.get("ended_at") or "")
        step = f" at step {view.record['steps']}" if "steps" in view.record else ""
        remedy = "run site.yml or playbooks/train.yml to continue it; no step is lost"
        yield Hit(view.snapshot.run, f"a user has stopped it{step}", "{} was stopped", [_record(when)], remedy)


def _record(when: str) -> Evidence:
    return Evidence("record", "", when, "the record of the run has the result stopped")


def deleted(view: View) -> Iterator[Hit]:
    """The object of the run was deleted outside this project."""
    if view.live is None and not view.importing and view.record.get("result") == records.RUNNING:
        remedy = "run site.yml or playbooks/train.yml to continue it from its last checkpoint"
        said = Evidence("record", "", str(view.record.get("submitted_at") or ""), "its record has the result running")
        yield Hit(
            view.snapshot.run, "its object was deleted outside this project", "{} is no longer running", [said], remedy
        )


def restarted(view: View) -> Iterator[Hit]:
    """The run was restarted, and has made no step since."""
    live = view.live
    if live is None or not view.goes_on or view.step or not restarts(live):
        return
    reported = view.events(
        live, "RestartJobSetFailurePolicyAction", "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"
    )
    said = [Evidence("controller", "", event_time(each), str(each.get("message", ""))) for each in reported[-1:]]
    if said:
        yield Hit(view.snapshot.run, f"it was restarted, {restarts(live)} so far", "{} was restarted", said)


def suspended(view: View) -> Iterator[Hit]:
    """The run was suspended outside this project. It has no pods until it is resumed."""
    live = view.live
    if live is not None and view.goes_on and (live.get("spec") or {}).get("suspend"):
        kind = str(live["kind"]).lower()
        command = f"kubectl -n {view.snapshot.namespace} patch {kind} {view.snapshot.run} --type=merge"
        remedy = command + """ -p '{"spec":{"suspend":false}}'"""
        said = Evidence("job", view.snapshot.run, "", "spec.suspend is true, which this project never sets")
        yield Hit(view.snapshot.run, "it was suspended outside this project", "{} has no pods", [said], remedy)


def importing(view: View) -> Iterator[Hit]:
    """The data of the run is imported into its claim before it is submitted."""
    if view.importing:
        name = f"{view.snapshot.run}-import"
        said = [Evidence("job", name, "", "is running")]
        yield Hit(view.snapshot.run, "its data is being imported", "{} waits for its data", said)


LATE_SECONDS = 8.0
"""A shorter delay of a step line may just be a shortage of CPU."""
LATE_INTERVALS = 3.0
"""Number of usual intervals between step lines after which the next one is late."""
_NO_STEPS = ("evaluating", "export", "end", "error")
"""Events after which no step line is expected."""


def silent(view: View) -> Iterator[Hit]:
    """A run with a watchdog is active and makes no steps. The evidence names the time until its watchdog ends it."""
    late = lateness(view)
    if late is None:
        return
    step, quiet = view.step, view.now.timestamp() - view.steps_since
    rest = max(0.0, view.stall_timeout - quiet)
    when = datetime.fromtimestamp(view.steps_since, UTC).isoformat(timespec="seconds")
    progress = f"last step: {step.get('step')} of {step.get('steps_total') or '?'}, {span(quiet)} ago"
    yield Hit(
        view.deciding,
        f"it has made no step for {span(quiet)}; the usual interval is {span(max(1.0, late))}",
        "{} makes no steps",
        [
            Evidence("log", view.deciding, when, progress),
            Evidence(
                "log", view.deciding, "", f"its watchdog ends it in {span(rest)}; it continues from its checkpoint"
            ),
        ],
        f"run trainyard logs {view.snapshot.run} --role ROLE for each other role: one hangs, or its node is slow",
    )


def lateness(view: View) -> float | None:
    """Return the usual seconds between two step lines if the next one is late, else None.

    Only our own programs have a watchdog. Another one may validate, or load data, for as long as it needs.
    """
    chief = view.chief
    if chief is None or not view.watched or not view.goes_on or pod_state(chief)[0] != "running":
        return None
    said = [each for each in view.said(chief) if "time" in each]
    if not said or not view.steps_since:
        return None
    now = view.now.timestamp()
    newest = said[-1]
    # An evaluation may take any time, but the watchdog sees each of its batches. A checkpoint has a limit of its own.
    if newest["event"] in _NO_STEPS or (newest["event"] == "saving" and now - newest["time"] <= view.stall_timeout):
        return None
    usual = _usual(view, said)
    # An event after the last step, such as a completed evaluation, is also a sign of life.
    quiet = now - (number(newest["time"]) or 0.0)
    return usual if quiet > max(LATE_SECONDS, LATE_INTERVALS * usual) else None


def _usual(view: View, said: list[Event]) -> float:
    """Return the usual seconds between two step lines.

    Steps and speed of the last lines give it, including an evaluation between two lines. A run with one line or without
    a speed uses its `report_every`, else a third of its watchdog's limit.
    """
    steps = [each for each in said if each["event"] == "step" and "step" in each]
    pairs = itertools.pairwise(steps[-6:])
    gaps = [(after["step"] - before["step"]) / speed for before, after in pairs if (speed := _speed(after)) > 0]
    if gaps:
        return max(gaps)
    every = whole(knobs(view.live).get("report_every"), 1)
    if steps and every and _speed(steps[-1]) > 0:
        return every / _speed(steps[-1])
    return view.stall_timeout / LATE_INTERVALS


def _speed(step: Event) -> float:
    return number(step.get("steps_per_second")) or 0.0
