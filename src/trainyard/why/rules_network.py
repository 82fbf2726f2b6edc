"""Rules for pods of a run that do not find or reach each other."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.untrusted import number
from ..kube.api import Object
from ..kube.isolation import blocking, end
from ..trainings.log_events import LAST_TIME, last
from ..trainings.names import CONTAINER
from ..trainings.pod_places import pod_state
from ..trainings.roles import EXIT_STALLED
from ..trainings.run_state import ended, wanted_pods
from .answer import Evidence
from .rule import Hit
from .snapshot import SYSTEM
from .view import View, at, ready, terminated

CONNECT_SECONDS = 8.0
"""Seconds from the chief's start after which the rules check DNS and policies."""
ALONE_SECONDS = 60.0
"""Seconds from the chief's start after which its peers count as unreachable. Before a process answers, it imports
TensorFlow, which is slow on some machines."""
DNS = "k8s-app"


def apart(view: View, seconds: float = CONNECT_SECONDS) -> bool:
    """Return whether the pods run but do not connect: the chief waits for its peers, or has lost them.

    :param seconds: that the chief may wait for its peers at its start.
    """
    chief = view.chief
    if chief is None or view.live is None or ended(view.live) == "Completed":
        return False
    if pod_state(chief)[0] == "ended":
        return terminated(chief).get("exitCode") == EXIT_STALLED
    if pod_state(chief)[0] != "running" or view.waiting or len(view.pods) < wanted_pods(view.live):
        return False
    said = view.said(chief)
    start = last(said, "start")
    if not start or last(said, "connected"):
        return bool(_lost(view, chief))
    return view.now.timestamp() - (number(start.get("time")) or 0.0) > seconds


def _lost(view: View, chief: Object) -> list[str]:
    """Return the tasks that the chief has lost since its last step, such as `ps 0`."""
    states: dict[str, str] = {}
    for event in view.said(chief):
        if event["event"] == "step":
            states.clear()
        if event["event"] == "peer":
            states[str(event.get("task"))] = str(event.get("state"))
    return sorted(task for task, state in states.items() if state == "lost")


def dns_down(view: View) -> Iterator[Hit]:
    """The pods run, and the cluster's DNS is down, so they cannot resolve each other."""
    if not apart(view):
        return
    pods = [pod for pod in view.system(SYSTEM) if (pod["metadata"].get("labels") or {}).get(DNS) == "kube-dns"]
    if any(map(ready, pods)):
        return
    text = "none of its pods is Ready" if pods else "it has no pod"
    yield Hit(
        view.deciding,
        "the cluster's DNS is not running",
        "{} cannot resolve its peers",
        [Evidence("pod", f"{SYSTEM}/coredns", "", text)],
        "kubectl -n kube-system get deployment coredns; scale it to 2, or inspect its pods",
    )


def policy_blocks(view: View) -> Iterator[Hit]:
    """A NetworkPolicy blocks traffic between the run's pods, or to the DNS."""
    if not apart(view):
        return
    policies = view.part("policies")
    space = {key: value for each in view.part("space") for key, value in (each["metadata"].get("labels") or {}).items()}
    ends = {place: end(pod, space) for place, pod in view.pods.items() if place != "import"}
    for place, pod in view.pods.items():
        for port in _ports(pod):
            for other, source in ends.items():
                closed = blocking(policies, source, ends[place], port) if other != place and place in ends else None
                if closed:
                    yield _blocked(f"{other} may not connect to {place} on port {port}", place, *closed)
                    return
    names = {"kubernetes.io/metadata.name": SYSTEM}
    dns = [end(each, names) for each in view.system(SYSTEM, **{DNS: "kube-dns"})][:1]
    for place, source in ends.items():
        for target in dns:
            if closed := blocking(policies, source, target, 53, "UDP"):
                yield _blocked(f"{place} may not query the cluster's DNS", place, *closed)
                return


def _blocked(message: str, place: str, direction: str, names: list[str]) -> Hit:
    text = f"restricts {direction.lower()} and does not allow this connection"
    return Hit(
        place,
        message,
        "the pods of the run do not reach each other",
        [Evidence("policy", name, "", text) for name in names],
        "run site.yml to restore the run's own policy; kubectl get networkpolicy lists all policies of the namespace",
    )


def _ports(pod: Object) -> list[int]:
    return [
        int(port["containerPort"])
        for container in pod["spec"].get("containers") or []
        if container.get("name") == CONTAINER
        for port in container.get("ports") or []
        if port.get("protocol", "TCP") == "TCP"
    ]


def peer_unreachable(view: View) -> Iterator[Hit]:
    """The chief cannot reach a ps or worker, or has lost one."""
    chief = view.chief
    if chief is None or not apart(view, ALONE_SECONDS):
        return
    error = last(view.said(chief), "error")
    away = error.get("unreachable")
    if isinstance(away, dict) and away:
        names = ", ".join(map(str, away))
        evidence = [_told(view, error, str(error.get("message", "")))]
    elif lost := _lost(view, chief):
        names = ", ".join(lost)
        said = [each for each in view.said(chief) if each["event"] == "peer" and str(each.get("task")) in lost]
        evidence = [_told(view, each, f"{each.get('task')}: {each.get('why')}") for each in said[-2:]]
    elif pod_state(chief)[0] == "ended":
        return  # It names no unreachable peer: `stalled` covers that.
    else:
        names, start = "ps or workers", last(view.said(chief), "start")
        waited = view.now.timestamp() - (number(start.get("time")) or 0.0)
        evidence = [Evidence("log", view.deciding, "", f"it has waited for its peers for {waited:.0f} s")]
    yield Hit(
        view.deciding,
        f"it cannot reach {names}",
        "{} waits for its peers",
        evidence,
        "check trainyard logs RUN --role ROLE of these peers, then the network between the nodes (calico-node)",
    )


def _told(view: View, event: dict[str, object], text: str) -> Evidence:
    when = number(event.get("time"), 0, LAST_TIME)
    stamp = "" if when is None else view.now.fromtimestamp(when, tz=view.now.tzinfo).isoformat()
    return Evidence("log", view.deciding, stamp if at(stamp) else "", text)
