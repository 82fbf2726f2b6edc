"""The logs of a run's processes: from the cluster while the pod exists, else from their copies on the controller."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..core.errors import TrainyardError
from ..core.untrusted import open_below, path_below
from ..kube.api import Api, KubeError, Object
from ..kube.apply import OUTAGE_SECONDS, retry
from ..kube.pod_log import Line, Lines, Position
from . import run_index
from .names import NAME_LABEL
from .pod_places import decider, newest, pod_state
from .run_state import ended, live_object

LOOK_SECONDS = 1.0
"""Interval of looking for the next pod of a place."""
PIECE_BYTES = 64 * 1024
"""Bytes of a kept log that are read at a time."""

USUAL = ("chief-0", "worker-0", "server-0")
"""Places that usually decide a run, used if its object is gone; the first of them that has a log."""


@dataclass(frozen=True)
class Place:
    """A process of a run.

    :param place: role and index, such as `worker-1`.
    """

    run: str
    namespace: str
    place: str


def find(api: Api, run: str, role: str, log_dir: str) -> Place:
    """Return the requested process.

    :param role: `worker-1`, or `worker` for its first; empty for the process that decides the run.
    :param log_dir: folder on the controller with the kept logs.
    :raises TrainyardError: there is no such run, process or log, or several namespaces have a run of this name.
    """
    known = run_index.find(api, run)
    there = list(newest(_pods(api, run, known.namespace)))
    kept = {_place(run, path) for path in _newest_attempt(Path(log_dir), known.namespace, run)} - {"", *there}
    places = [*there, *sorted(kept)]
    if not places:
        raise TrainyardError(
            f"The run {run} has no logs: its pods are gone, and their logs were not kept.",
            remedy="Run playbooks/train.yml without wait=false, or playbooks/train_stop.yml: both keep the logs on the "
            "controller.",
        )
    wanted = role if not role or role[-1].isdigit() else f"{role}-0"
    wanted = wanted or next((each for each in (decider(known.live), *USUAL) if each in places), "")
    if wanted not in places:
        raise TrainyardError(f"The run {run} has no {role or 'process'} now.", remedy=f"It has {', '.join(places)}.")
    return Place(run, known.namespace, wanted)


def read(api: Api, place: Place, log_dir: str) -> Iterator[Line]:
    """Yield the current lines of the log: of the place's newest pod, or of the kept log.

    :raises KubeError: the cluster refuses, or the connection breaks off.
    """
    pod = _newest_pod(api, place)
    if pod is not None:
        try:
            yield from _split(api.log_pieces(place.namespace, pod["metadata"]["name"]))
        except KubeError as error:
            if not (error.status == 404 or error.no_log):
                raise
        return
    for path in _newest_attempt(Path(log_dir), place.namespace, place.run):
        if _place(place.run, path) == place.place:
            parts = path.relative_to(log_dir).parts
            with open(open_below(log_dir, *parts), "rb") as file:
                yield from _split(iter(partial(file.read, PIECE_BYTES), b""))


def _split(pieces: Iterable[bytes]) -> Iterator[Line]:
    lines = Lines(stamped=False)
    for piece in pieces:
        yield from lines.feed(piece)
    yield from lines.rest()


def follow(
    api: Api, place: Place, say: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> Iterator[Line]:
    """Yield new lines as they arrive, from one pod of the place to the next, until the run has ended.

    :param say: receives a line with the reason of waiting.
    :raises KubeError: the cluster refuses.
    """
    followed, said = "", ""
    while True:
        pod = _newest_pod(api, place)
        name = pod["metadata"]["name"] if pod else ""
        if pod and name != followed and pod_state(pod)[0] != "waiting":
            followed = name
            yield from _lines(api, place.namespace, name, sleep)
            continue
        if _ended(api, place):
            return
        why = f"waiting for {place.place}" + (f": {pod_state(pod)[1]}" if pod and name != followed else "")
        if why != said:
            say(why)
            said = why
        sleep(LOOK_SECONDS)


def _lines(api: Api, namespace: str, pod: str, sleep: Callable[[float], None]) -> Iterator[Line]:
    """Yield every line of a pod's log until it ends. Reconnect if the connection breaks, and repeat no line."""
    at = Position()
    while True:
        lines, new = Lines(), False
        at.begin()
        try:
            for piece in api.log_pieces(namespace, pod, since=at.stamp, timestamps=True, follow=True):
                for line in filter(at.is_new, lines.feed(piece)):
                    new = True
                    yield line
        except KubeError as error:
            if error.status == 404:  # The pod is gone.
                return
            # 500: its node does not answer.
            if not (error.transient or error.no_log or error.status == 500):
                raise
            sleep(LOOK_SECONDS)
            continue
        now = retry(partial(api.get, "v1", "Pod", pod, namespace), timeout=OUTAGE_SECONDS)
        if now is None or pod_state(now)[0] == "ended":
            yield from filter(at.is_new, lines.rest())
            return
        if not new:
            # It has ended, but the API server does not report this yet.
            sleep(LOOK_SECONDS)


def _ended(api: Api, place: Place) -> bool:
    live = retry(partial(live_object, api, place.namespace, place.run), timeout=OUTAGE_SECONDS)
    return live is None or ended(live) is not None


def _newest_pod(api: Api, place: Place) -> Object | None:
    pods = retry(partial(_pods, api, place.run, place.namespace), timeout=OUTAGE_SECONDS)
    return newest(pods).get(place.place)


def _pods(api: Api, run: str, namespace: str | None = None) -> list[Object]:
    return api.list("v1", "Pod", namespace, labels=f"{NAME_LABEL}={run}")


def _newest_attempt(log_dir: Path, namespace: str, run: str) -> list[Path]:
    """Return the kept files of the last attempt, the youngest pod of a place last. Links are left out."""
    run_folder = Path(path_below(str(log_dir), f"{namespace}-{run}"))
    attempts = [path for path in run_folder.glob("*") if path.is_dir() and not path.is_symlink()]
    files = [path for each in attempts for path in each.glob("*.log") if not path.is_symlink()]
    # Sorted by file times, which the controller sets: a user can choose the name of an attempt.
    youngest = sorted(files, key=lambda path: path.stat().st_mtime)
    return [path for path in youngest if path.parent == youngest[-1].parent]


def _place(run: str, path: Path) -> str:
    """Return the place of a kept log; empty if it has none.

    It is `worker-1` for `mnist-worker-0-1-x7k2p.log`, `chief-0` for `mnist-0-x7k2p.log` of a standalone Job, and
    `server-0` for `notebook-6b7f5c4d8b-x7k2p.log` of a Deployment.
    """
    name = path.name.removeprefix(run)
    if match := re.fullmatch(r"(?:-([a-z]+)-0)?-([0-9]{1,3})-[a-z0-9]+\.log", name):
        return f"{match[1] or 'chief'}-{match[2]}"
    return "server-0" if re.fullmatch(r"-[a-z0-9]{4,10}-[a-z0-9]{5}\.log", name) else ""
