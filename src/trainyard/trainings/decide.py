"""The next action for a run, derived from its record and its live object."""

from __future__ import annotations

KEEP, ADOPT, SUBMIT, LEAVE, PROBE = "keep", "adopt", "submit", "leave", "probe"


def decide(
    wanted: str,
    recorded: str | None,
    live: str | None,
    *,
    ended: str | None,
    endless: bool,
    proven: bool = True,
    replace: bool = False,
) -> str:
    """Return the next action for a run with the hash `wanted`.

    :param recorded: hash of the run whose success is recorded.
    :param live: hash of the existing JobSet or Job.
    :param ended: `Completed` or `Failed` for an existing object that has ended, else None.
    :param endless: whether the run has no last step.
    :param proven: whether the record has all evidence that the run should provide.
    :param replace: end a run that is running with another description. Otherwise it is left unchanged.
    """
    goes_on = live is not None and ended is None
    if goes_on and live != wanted:
        return SUBMIT if replace else LEAVE
    if goes_on:
        return KEEP if endless else ADOPT
    if recorded == wanted:
        return KEEP if proven else PROBE
    if live == wanted and ended == "Completed":
        return ADOPT  # completed without a follower: record it
    return SUBMIT
