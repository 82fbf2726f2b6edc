"""Page of all runs: active runs, the queue, and ended runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ...kube.api import KubeError, Object
from ...kube.placement import shown
from ...kube.reads import Reader, Unread, listing, must, objects
from ...trainings.pod_places import newest
from ...trainings.runs import ENDED, HeldBy, Row, by_run, held_by, reading
from .everyone import everyone
from .page import Page, Params
from .words import about, duration, link, number, percent, plural, tone, whole

SPACES = "trainyard.dev/trainings=true"
"""Label of namespaces with runs."""


@dataclass(frozen=True)
class Answers:
    """The readable runs.

    :param hidden: namespaces whose runs the user may not see.
    """

    rows: Sequence[Row]
    hidden: Sequence[str] = ()


def read(params: Params) -> Reader[Answers]:
    """Read the runs of the whole cluster; without that right, read each namespace that the user may see.

    :raises KubeError: the user may not see any namespace.
    """
    now = datetime.now(UTC)
    if params.get("namespace"):
        return Answers((yield from reading(now, [params["namespace"]])))
    try:
        return Answers((yield from reading(now)))
    except KubeError as error:
        if error.status != 403:
            raise
        refused = error
    spaces = objects((yield listing("v1", "namespaces", labels=SPACES)))
    rows: list[Row] = []
    hidden: list[str] = []
    for space in sorted(each["metadata"]["name"] for each in must(spaces)):
        try:
            rows += yield from reading(now, [space])
        except KubeError as error:
            if error.status != 403:
                raise
            hidden.append(space)
    if len(hidden) == len(must(spaces)):
        raise refused
    return Answers((yield from _with_holders(rows)), hidden)


def _with_holders(rows: Sequence[Row]) -> Reader[list[Row]]:
    """Add to each waiting row the visible holders of the resources that it waits for."""
    if not any(row.state == "waiting" for row in rows):
        return list(rows)
    nodes = objects((yield listing("v1", "nodes")))
    pods = (yield from everyone()).pods
    known, mine = {(row.namespace, row.run): row for row in rows}, by_run(pods)
    there: Sequence[Object] = [] if isinstance(nodes, Unread) else nodes
    return [
        replace(row, held_by=held_by(newest(mine.get(key, ())).values(), there, pods, known))
        if row.state == "waiting"
        else row
        for key, row in known.items()
    ]


def build(answers: Answers, params: Params, now: datetime) -> dict[str, Any]:
    """Build the view: `active`, `queue` and `over`, each a list of entries; `summary`, a list of texts; `unread`,
    sentences on missing data."""
    entries = [entry(row) for row in answers.rows]
    queue = [each for each in entries if each["state"] == "waiting"]
    over = [each for each in entries if each["state"] in ENDED]
    active = [each for each in entries if each not in queue and each not in over]
    gpus = sum(each["gpus"] for each in entries)
    summary = [f"{len(active)} active", f"{len(queue)} waiting", f"{plural(gpus, 'GPU')} in use"]
    hidden = ", ".join(answers.hidden)
    unread = [f"Your token may not see the runs in: {hidden}."] if hidden else []
    return {"active": active, "queue": queue, "over": over, "summary": summary, "unread": unread}


def entry(row: Row) -> dict[str, Any]:
    """Return the entry of a run: the fields of its row, and their text for pages."""
    return {
        **asdict(row),
        "tone": tone(row.state),
        "href": link("runs", row.namespace, row.run),
        # A run does not wait for resources that it holds itself.
        "held_by": [holder(each) for each in row.held_by if (each.namespace, each.run) != (row.namespace, row.run)],
        "shown": {
            "step": steps(row.step, row.steps),
            "loss": number(row.loss),
            "accuracy": percent(row.accuracy),
            "rate": number(row.steps_per_second, 3),
            "left": about(row.seconds_left),
            "age": duration(row.age),
            "gpus": whole(row.gpus) if row.gpus else "none",
            "pods": f"{row.pods} of {row.wanted}" if row.wanted else "none",
        },
    }


def holder(held: HeldBy) -> dict[str, Any]:
    """Return the entry of a holder, which is a run or a namespace with other pods: name, resources, and time left."""
    name = held.run or f"pods in {held.namespace}"
    left = "time left unknown" if held.seconds_left is None else f"about {about(held.seconds_left)} left"
    what = f"{held.resource.removeprefix('nvidia.com/')} {shown(held.resource, held.amount)}"
    return {
        **asdict(held),
        "name": name,
        "href": link("runs", held.namespace, held.run) if held.run else link("cluster", "core", "v1", "pods"),
        "shown": f"{what}, {left}" if held.run else what,
    }


def steps(step: int | None, total: int | None) -> str:
    """Return text such as `400 of 2,000`."""
    return whole(step) + (f" of {whole(total)}" if total else "")


PAGE = Page("runs", "/", read, build, query=("namespace",))
