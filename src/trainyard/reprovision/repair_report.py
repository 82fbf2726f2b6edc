"""The report of a converge, with the outcome of each item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .converge import VERDICT_FAILS, Outcome
from .report import EXIT_DRIFT, EXIT_FAILED, EXIT_HELD, EXIT_UNKNOWN, hosts_of, ordered, verdict_notes
from .run import Looked, Session


def repaired(
    session: Session, document: Mapping[str, Any], last: Looked | None, outcome: Outcome, notes: Sequence[str]
) -> dict[str, Any]:
    """Return the report of a converge: the report of its check run, with the outcomes.

    :param document: the report of the check run before the repair.
    :param last: the check run after the repair; None if there was none.
    :param notes: additional notes.
    """
    now = session.clock.time()
    told = [session.masker.text(each) for each in (*outcome.notes, *notes)]
    begun = session.report
    return {
        **document,
        "ended": now,
        "seconds": round(now - float(begun["began"]), 1),
        "repaired": begun["repaired"],
        "exit_status": outcome.status,
        "headline": _headline(outcome, told),
        "hosts": hosts_of(last.found, session.wanted, last.items) if last else document["hosts"],
        "items": [session.masker.data(item.as_json()) for item in ordered(outcome.items)],
        "verdict": outcome.verdict,
        "limits": list(outcome.limits),
        "notes": [*dict.fromkeys((*([] if last else document["notes"]), *_notes(session, last))), *told],
    }


def _notes(session: Session, last: Looked | None) -> list[str]:
    """Return the notes of the session, and the checks that failed in the verdict of the last check run."""
    missed = verdict_notes(last.found) if last else []
    return [*session.report["notes"], *(session.masker.text(each) for each in missed)]


def _headline(outcome: Outcome, told: Sequence[str]) -> str:
    """Return one line about a converge."""
    well = sum(item.repaired for item in outcome.items)
    left = len(outcome.items) - well
    parts = [f"{well} of {len(outcome.items)} items repaired"] if well else []
    if outcome.status == EXIT_HELD:
        return "; ".join(["held back: " + next(iter([*outcome.limits, *told]), ""), *parts])
    if outcome.status == EXIT_FAILED:
        first = next(iter(told), "")
        return "; ".join([first if first == VERDICT_FAILS else f"a repair failed: {first}", *parts])
    if outcome.status == EXIT_UNKNOWN:
        return "; ".join(["unknown: " + "; ".join(told), *parts])
    if outcome.status == EXIT_DRIFT:
        return "; ".join([*parts, f"{left} left for an operator" if left else "the verdict is not pass"])
    return "all drift repaired" if well else "clean"
