"""What a run says of itself, and how its pods ended."""

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
    """(place, pod, how its container ended) of the pods whose end matters: those of a run that has failed, and of one
    that goes on those after which it has made no step, and those of a service that end again and again."""
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
        # The cluster's times are whole seconds, rounded down: a step in the second of an end may be its own last one.
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
    """The last thing that a pod has said of itself: its error in JSON, else its last line."""
    text = view.log(pod)
    error = last(events(text), "error")
    line = str(error.get("message") or "") or "".join(last_lines(text, 1))
    when = str(how.get("finishedAt") or "")
    code = f"exit code {how.get('exitCode')}" + (f", {how['reason']}" if how.get("reason", "Error") != "Error" else "")
    return [Evidence("pod", place, when, code), *([Evidence("log", place, when, line[:600])] if line else [])]


def _for_memory(how: Mapping[str, Any]) -> bool:
    """Whether the kernel has killed a container for memory; one that it kills before its program runs has failed to
    start, and runc says why in words (libcontainer/process_linux.go)."""
    return how.get("reason") == "OOMKilled" or "OOM-killed" in str(how.get("message", ""))


def oom_killed(view: View) -> Iterator[Hit]:
    """A container needed more memory than its limit, and was killed."""
    for place, pod, how in failures(view):
        if _for_memory(how):
            limits = [(each.get("resources") or {}).get("limits") or {} for each in pod["spec"].get("containers") or []]
            limit = next((str(each["memory"]) for each in limits if "memory" in each), "that of its node")
            role = place.rpartition("-")[0]
            yield Hit(
                place,
                f"it was killed for memory, its limit is {limit}",
                EFFECT,
                _words(view, place, pod, how)[:1],
                f"raise {role}.limits.memory in workloads_trainings",
            )


def evicted(view: View) -> Iterator[Hit]:
    """The node has put the pod out, because it was short of something."""
    for place, pod, how in failures(view):
        status = pod.get("status") or {}
        if status.get("reason") == "Evicted":
            node = str(pod["spec"].get("nodeName") or "its node")
            said = Evidence("kubelet", place, str(how.get("finishedAt") or ""), str(status.get("message") or ""))
            yield Hit(
                place, f"{node} has put it out", EFFECT, [said], f"make room on {node}, of what the message names"
            )


def node_refused(view: View) -> Iterator[Hit]:
    """The node has refused the pod that it was given, or has put it out for its own end."""
    for place, pod, how in failures(view):
        status = pod.get("status") or {}
        if not how and status.get("reason") != "Evicted":
            node = str(pod["spec"].get("nodeName") or "its node")
            said = Evidence("kubelet", place, "", str(status.get("message") or status["reason"]))
            remedy = f"journalctl -u kubelet on {node}; of a pod with a GPU, the device plugin's pod there, too"
            yield Hit(place, f"{node} does not run it: {status['reason']}", EFFECT, [said], remedy)


def _by_code(view: View, code: int, message: str, remedy: str) -> Iterator[Hit]:
    for place, pod, how in _ended_with(view, code):
        yield Hit(place, message, EFFECT, _words(view, place, pod, how), remedy)


def disk_full(view: View) -> Iterator[Hit]:
    """The volume of the run's files is full, forbidden or damaged (exit code 5)."""
    message = "the volume of its files is full, forbidden or damaged"
    remedy = "make room, or mend what its last line names; the same call goes on from the last checkpoint"
    yield from _by_code(view, EXIT_VOLUME, message, remedy)


def refused_input(view: View) -> Iterator[Hit]:
    """The training refuses its input; its last line says what (exit code 2)."""
    yield from _by_code(view, EXIT_REFUSED, "it refuses its input", "change what it names in workloads_trainings")


def below_bound(view: View) -> Iterator[Hit]:
    """The accuracy is below the bound after all steps (exit code 3)."""
    for place, pod, how in _ended_with(view, EXIT_BOUND):
        end = last(view.said(pod), "end")
        accuracy, bound = end.get("accuracy"), end.get("accuracy_bound")
        known = isinstance(accuracy, int | float) and isinstance(bound, int | float)
        message = f"its accuracy is {accuracy:.4f}, the bound {bound:g}" if known else "its accuracy is below the bound"
        remedy = "raise train_steps, or lower accuracy_bound, in workloads_trainings"
        yield Hit(place, message, EFFECT, _words(view, place, pod, how)[:1], remedy)


def diverged(view: View) -> Iterator[Hit]:
    """A loss or a parameter is not a finite number (exit code 4)."""
    message = "its loss is not a finite number any more"
    yield from _by_code(view, EXIT_DIVERGED, message, "lower learning_rate in workloads_trainings")


def stalled(view: View) -> Iterator[Hit]:
    """It made no progress, and its watchdog has ended it (exit code 75)."""
    for place, pod, how in _ended_with(view, STALLED):
        error = last(view.said(pod), "error")
        if not error.get("unreachable"):
            seconds = error.get("stalled_seconds")
            after = f" for {span(seconds)}" if isinstance(seconds, int | float) else ""
            remedy = (
                "trainyard logs of the other roles, and the state of their nodes; on a slow machine raise stall_timeout"
            )
            yield Hit(place, f"it made no step{after}, and ended itself", EFFECT, _words(view, place, pod, how), remedy)


_NAMED = (EXIT_VOLUME, EXIT_REFUSED, EXIT_BOUND, EXIT_DIVERGED, STALLED)


def crashed(view: View) -> Iterator[Hit]:
    """A process ended in another way than it should."""
    for place, pod, how in failures(view):
        if how and not _for_memory(how) and how.get("exitCode") not in _NAMED:
            remedy = f"trainyard logs {view.snapshot.run} --role {place} has what it said before"
            yield Hit(place, f"it ended with {how.get('exitCode')}", EFFECT, _words(view, place, pod, how), remedy)
