"""The logs of a run's processes: from the cluster while a pod is there, else those that were kept on the controller."""

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
from ..kube.apply import retry
from ..kube.patient import OUTAGE_SECONDS
from ..kube.pod_log import Line, Lines, Position
from . import found
from .names import NAME_LABEL
from .places import decider, newest, pod_state
from .state import ended, live_object

LOOK_SECONDS = 1.0
"""Between two looks for the next pod of a place."""
PIECE_BYTES = 64 * 1024
"""Of a kept log that are read at a time."""

USUAL = ("chief-0", "worker-0", "server-0")
"""Whose end decides a run, where nothing of it is left to ask; the first of them that it had."""


@dataclass(frozen=True)
class Place:
    """A process of a run.

    :param place: `worker-1`.
    """

    run: str
    namespace: str
    place: str


def find(api: Api, run: str, role: str, log_dir: str) -> Place:
    """The process that is meant.

    :param role: `worker-1`, or `worker` for its first; empty for the one whose end decides the run.
    :param log_dir: where the logs of runs are kept.
    :raises TrainyardError: no such run or process, a run of this name in several namespaces, or nothing was kept.
    """
    known = found.find(api, run)
    there = list(newest(_pods(api, run, known.namespace)))
    kept = {_place(run, path) for path in _newest_attempt(Path(log_dir), known.namespace, run)} - {"", *there}
    places = [*there, *sorted(kept)]
    if not places:
        raise TrainyardError(
            f"Nothing is left of what the run {run} has said: its pods are gone, and nobody kept their logs.",
            remedy="playbooks/train.yml without wait=false and playbooks/train_stop.yml keep them on the controller.",
        )
    wanted = role if not role or role[-1].isdigit() else f"{role}-0"
    wanted = wanted or next((each for each in (decider(known.live), *USUAL) if each in places), "")
    if wanted not in places:
        raise TrainyardError(f"The run {run} has no {role or 'process'} now.", remedy=f"It has {', '.join(places)}.")
    return Place(run, known.namespace, wanted)


def read(api: Api, place: Place, log_dir: str) -> Iterator[Line]:
    """The lines of the log as they are now: of the place's newest pod, or as kept.

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
    """The lines as they come, from one pod of the place to the next, until the run has ended.

    :param say: told what is waited for.
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
    """Every line of a pod's log until it ends; a connection that breaks is made again, and no line comes twice."""
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
            # It has ended, and the API server does not say so yet.
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
    """Kept files of the last attempt, the youngest pod of a place last; links are none."""
    run_folder = Path(path_below(str(log_dir), f"{namespace}-{run}"))
    attempts = [path for path in run_folder.glob("*") if path.is_dir() and not path.is_symlink()]
    files = [path for each in attempts for path in each.glob("*.log") if not path.is_symlink()]
    # By the times of files, which the controller has written: an operator chooses the name of an attempt.
    youngest = sorted(files, key=lambda path: path.stat().st_mtime)
    return [path for path in youngest if path.parent == youngest[-1].parent]


def _place(run: str, path: Path) -> str:
    """`worker-1` of `mnist-worker-0-1-x7k2p.log`, `chief-0` of `mnist-0-x7k2p.log`, whose Job is alone, `server-0` of
    `notebook-6b7f5c4d8b-x7k2p.log`, which a Deployment has named; else empty."""
    name = path.name.removeprefix(run)
    if match := re.fullmatch(r"(?:-([a-z]+)-0)?-([0-9]{1,3})-[a-z0-9]+\.log", name):
        return f"{match[1] or 'chief'}-{match[2]}"
    return "server-0" if re.fullmatch(r"-[a-z0-9]{4,10}-[a-z0-9]{5}\.log", name) else ""
