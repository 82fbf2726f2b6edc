"""Rules about processes that ended with an unexpected exit code: the first of them, and those that have lost it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..kube.api import Object
from ..kube.pod_log import last_lines
from ..trainings.roles import EXIT_BOUND, EXIT_DIVERGED, EXIT_REFUSED, EXIT_STALLED, EXIT_VOLUME
from .known_errors import LINES, follows, known_error
from .rule import Hit
from .rules_run import EFFECT, failures, for_memory, words
from .view import View

_NAMED = (EXIT_VOLUME, EXIT_REFUSED, EXIT_BOUND, EXIT_DIVERGED, EXIT_STALLED)
"""Exit codes with rules of their own."""


@dataclass(frozen=True)
class _Crash:
    """The end of one process.

    :param how: the termination of its container.
    :param lines: the last lines of its log.
    """

    place: str
    pod: Object
    how: dict[str, Any]
    lines: list[str]


def _crashes(view: View) -> tuple[list[_Crash], list[_Crash]]:
    """Return the crashes with a reason of their own, the first one first, and those that follow from them.

    If all processes report a lost peer, the one that ended first counts as the reason.
    """
    found = [
        _Crash(place, pod, how, last_lines(view.log(pod), LINES))
        for place, pod, how in failures(view)
        if how and not for_memory(how) and how.get("exitCode") not in _NAMED
    ]
    found.sort(key=lambda each: str(each.how.get("finishedAt") or ""))
    own = [each for each in found if not follows(each.lines)] or found[:1]
    return own, [each for each in found if each not in own]


def crashed(view: View) -> Iterator[Hit]:
    """A process ended with an unexpected exit code. A known error has its cause and remedy."""
    for each in _crashes(view)[0]:
        cause, remedy = known_error(each.lines) or (
            f"its exit code is {each.how.get('exitCode')}",
            f"run trainyard logs {view.snapshot.run} --role {each.place} to see its last lines",
        )
        yield Hit(each.place, cause, EFFECT, words(view, each.place, each.pod, each.how), remedy)


def lost_peer(view: View) -> Iterator[Hit]:
    """A process ended because another one of the run had ended before."""
    for each in _crashes(view)[1]:
        yield Hit(each.place, "it has lost the connection to a pod that had ended", EFFECT)
