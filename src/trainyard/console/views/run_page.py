"""Page of one run: its progress, curves, pods and logs, and the answer of `trainyard why`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from ...core.errors import TrainyardError
from ...core.untrusted import clean
from ...kube.api import KubeError, Object
from ...kube.reads import Get, Reader, Unread, listing, log, objects, path
from ...trainings.log_events import Event, idle_gpus
from ...trainings.run_detail import Attempt, Detail, PodRow, reading
from ...trainings.runs import ENDED
from ...why.judge import explain
from ...why.snapshot import snapshot
from .curves import TITLES, drawing, points
from .events import events
from .page import Page, Params
from .runs_page import entry
from .words import ago, clock, duration, link, number, percent, tone

TONES = {"cause": "bad", "follows": "wait"}


def judged(name: str, namespace: str, now: datetime) -> Reader[dict[str, Any]]:
    """Read the answer as JSON, and add a colour to each finding.

    :raises TrainyardError, KubeError: as `snapshot`.
    """
    answer = explain((yield from snapshot(name, namespace, now))).as_json()
    findings = [{**each, "tone": TONES.get(each["part"], "idle")} for each in answer["findings"]]
    return {**answer, "findings": findings}


TAIL, TAILS = 200, (50, 200, 1000)
"""Default number of shown lines of a pod's log, and the choices of the user."""


@dataclass(frozen=True)
class Answers:
    """The data of a run.

    :param why: answer of `trainyard why`, as JSON.
    :param happened: events of its namespace.
    :param board: whether its claim has a TensorBoard.
    :param text: of the requested log.
    :param unread: sentences on optional data that could not be read.
    """

    detail: Detail
    why: Mapping[str, Any]
    happened: Sequence[Object] = ()
    board: bool = False
    text: str = ""
    unread: Sequence[str] = ()


def read(params: Params) -> Reader[Answers]:
    """
    :raises KubeError: the run cannot be read; status 404 if there is none of this name.
    """
    space, name, now = params["namespace"], params["run"], datetime.now(UTC)
    try:
        detail = yield from reading(space, name, now)
    except TrainyardError as error:
        if isinstance(error, KubeError):
            raise
        raise KubeError(error.message, status=404, remedy=error.remedy) from error
    claim = detail.files.get("claim", "")
    asked = next((each for each in detail.pods if each.name == params.get("log") and each.has_log), None)
    wanted = {
        "happened": listing("v1", "events", space),
        "board": Get(path("apps/v1", "deployments", space, f"tensorboard-{claim}")) if claim else None,
        "text": log(space, asked.name, tail=tail(params)) if asked else None,
    }
    asks = {key: each for key, each in wanted.items() if each is not None}
    answers = dict(zip(asks, (yield tuple(asks.values())), strict=True))
    why = yield from judged(name, space, now)
    happened, text = objects(answers["happened"]), answers.get("text", "")
    missing = [each for each in answers.values() if isinstance(each, Unread) and not (each.absent or each.no_log)]
    return Answers(
        detail=detail,
        happened=[] if isinstance(happened, Unread) else happened,
        board=not isinstance(answers.get("board", Unread("", 404, "")), Unread),
        text="" if isinstance(text, Unread) else text,
        why=why,
        unread=[each.reason for each in missing],
    )


def tail(params: Params) -> int:
    """Return the requested number of log lines, within limits."""
    text = params.get("tail", "")
    return min(int(text), TAILS[-1]) if text.isdecimal() and len(text) < 6 and int(text) else TAIL


def build(answers: Answers, params: Params, now: datetime) -> dict[str, Any]:
    """Build the view: the entry of the list of runs, `curves`, `pods_now`, `attempts`, `knobs`, `events`, `why`, and
    links."""
    detail, row = answers.detail, answers.detail.row
    bound = _bound(detail)
    said = [each["time"] for each in detail.said if "time" in each]
    # The log is part of the view, so that a page without scripts can show it.
    asked = params.get("log", "")
    over = row.state in ENDED
    return {
        **entry(row),
        "why": answers.why,
        "bound": bound,
        "shown_bound": percent(bound) if bound else "",
        "attempt": detail.attempts[0].name if detail.attempts else "",
        "device": {"gpu": "GPU", "cpu": "CPU"}.get(str(row.compute), ""),
        "idle_gpus": idle_gpus({"compute": row.compute, "gpu_allocated": row.gpu_allocated}),
        "restarts": detail.attempts[0].restarts if detail.attempts else 0,
        "over": over,
        "service": detail.service,
        "reason": row.why,
        "until": max(said, default=0),
        "curves": curves(detail.said, bound),
        "pods_now": [pod(each, row.namespace, now) for each in detail.pods],
        "attempts": [attempt(each) for each in detail.attempts],
        "knobs": [{"name": name, "value": str(value)} for name, value in detail.knobs.items()],
        "files": dict(detail.files),
        "events": events([each for each in answers.happened if _about(each, detail)], now),
        "tensorboard": link("tensorboard", row.namespace, detail.files["claim"]) + "/" if answers.board else "",
        "log": {"pod": asked, "tail": tail(params), "tails": list(TAILS), "text": clean(answers.text)},
        "logs": [{"name": each.name, "place": each.place} for each in detail.pods if each.has_log],
        "api": "/api/v1" + link("runs", row.namespace, row.run),
        "unread": [*detail.unread, *answers.unread],
    }


def pod(row: PodRow, namespace: str, now: datetime) -> dict[str, Any]:
    """Return the row of a pod of the run."""
    failed = row.exit_code not in (None, 0)
    tones = {"running": "busy", "waiting": "wait"}
    return {
        **asdict(row),
        "tone": tones.get(row.state, "bad" if failed else "good"),
        "age": duration(ago(row.started or row.created, now)),
        "exit": "" if row.exit_code is None else str(row.exit_code),
        "gpus": str(row.gpus or ""),
        "note": "" if row.newest else "replaced",
        "href": link("cluster", "core", "v1", "pods", namespace, row.name),
    }


def attempt(found: Attempt) -> dict[str, Any]:
    return {**asdict(found), "tone": tone(found.result), "since": clock(found.submitted), "until": clock(found.ended)}


def curves(said: Sequence[Event], bound: float | None) -> list[dict[str, Any]]:
    """Return the curves, each with its points and a drawing for browsers without scripts."""
    found = []
    for tag, title in TITLES.items():
        mine, line = points(said, tag), bound if tag == "accuracy" else None
        shown = f"{number(mine[0][1])} → {number(mine[-1][1])}" if mine else ""
        found.append(
            {
                "tag": tag,
                "title": title,
                "points": mine,
                "bound": line,
                "shown": shown,
                "drawing": drawing(mine, line),
            }
        )
    return found


def _bound(detail: Detail) -> float | None:
    """Return the accuracy that the run must reach; None if it has no bound."""
    try:
        return float(detail.knobs.get("accuracy_bound", detail.record.get("accuracy_bound") or 0)) or None
    except (TypeError, ValueError):
        return None


def _about(event: Mapping[str, Any], detail: Detail) -> bool:
    """Return whether an event belongs to the run: to its object, the Job of a role, or a pod.

    Names are compared in full, because the name of another run may have the same prefix.
    """
    name, run = (event.get("involvedObject") or {}).get("name"), detail.row.run
    roles = {each.role for each in detail.pods}
    return name in {run, *(f"{run}-{role}-0" for role in roles), *(each.name for each in detail.pods)}


PAGE = Page("run", "/runs/{namespace}/{run}", read, build, query=("log", "tail"))
