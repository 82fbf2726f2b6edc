"""Rules for pods of a run that ended with a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..kube.api import Object
from ..kube.pod_log import last_lines
from ..trainings.jobset import EXIT_BOUND, EXIT_DIVERGED, EXIT_REFUSED, EXIT_VOLUME
from ..trainings.logs import events, last
from ..trainings.places import pod_state
from ..trainings.roles import EXIT_STOPPED, TOPOLOGIES, clean_exits
from ..trainings.state import ended
from .answer import Evidence
from .rule import Hit
from .rules_network import STALLED
from .text import span
from .view import View, at, containers, terminated

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


def _words(view: View, place: str, pod: Object, how: dict[str, Any]) -> list[Evidence]:
    """Return the exit code of a pod and its error: the last JSON error event, else the last line of its log."""
    text = view.log(pod)
    error = last(events(text), "error")
    line = str(error.get("message") or "") or "".join(last_lines(text, 1))
    when = str(how.get("finishedAt") or "")
    code = f"exit code {how.get('exitCode')}" + (f", {how['reason']}" if how.get("reason", "Error") != "Error" else "")
    return [Evidence("pod", place, when, code), *([Evidence("log", place, when, line[:600])] if line else [])]


def _for_memory(how: Mapping[str, Any]) -> bool:
    """Return whether the kernel has killed a container for memory.

    If that happens before the program runs, the reason is StartError, and only the message of runc names the OOM killer
    (libcontainer/process_linux.go).
    """
    return how.get("reason") == "OOMKilled" or "OOM-killed" in str(how.get("message", ""))


def oom_killed(view: View) -> Iterator[Hit]:
    """A container exceeded its memory limit and was killed."""
    for place, pod, how in failures(view):
        if _for_memory(how):
            limits = [(each.get("resources") or {}).get("limits") or {} for each in pod["spec"].get("containers") or []]
            limit = next((str(each["memory"]) for each in limits if "memory" in each), "that of its node")
            role = place.rpartition("-")[0]
            yield Hit(
                place,
                f"it ran out of memory and was killed; its limit is {limit}",
                EFFECT,
                _words(view, place, pod, how)[:1],
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
        yield Hit(place, message, EFFECT, _words(view, place, pod, how), remedy)


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
        yield Hit(place, message, EFFECT, _words(view, place, pod, how)[:1], remedy)


def diverged(view: View) -> Iterator[Hit]:
    """A loss or a parameter is not a finite number (exit code 4)."""
    message = "its loss or a parameter is no longer a finite number"
    yield from _by_code(view, EXIT_DIVERGED, message, "lower learning_rate in workloads_trainings")


def stalled(view: View) -> Iterator[Hit]:
    """It made no progress, and its watchdog has ended it (exit code 75)."""
    for place, pod, how in _ended_with(view, STALLED):
        error = last(view.said(pod), "error")
        if not error.get("unreachable"):
            seconds = error.get("stalled_seconds")
            after = f" for {span(seconds)}" if isinstance(seconds, int | float) else ""
            remedy = "check trainyard logs of the other roles and their nodes; on a slow machine raise stall_timeout"
            yield Hit(place, f"it made no step{after}, and ended itself", EFFECT, _words(view, place, pod, how), remedy)


_NAMED = (EXIT_VOLUME, EXIT_REFUSED, EXIT_BOUND, EXIT_DIVERGED, STALLED)


def crashed(view: View) -> Iterator[Hit]:
    """A process ended with an unexpected exit code."""
    for place, pod, how in failures(view):
        if how and not _for_memory(how) and how.get("exitCode") not in _NAMED:
            remedy = f"run trainyard logs {view.snapshot.run} --role {place} to see its last lines"
            yield Hit(place, f"its exit code is {how.get('exitCode')}", EFFECT, _words(view, place, pod, how), remedy)
