"""What has to be done for a run, by what is on record of it and what there is."""

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
    """What has to be done for a run with the hash `wanted`.

    :param recorded: hash of the run whose success is on record.
    :param live: hash of the JobSet or Job that exists.
    :param ended: `Completed`, `Failed` or None for the one that exists.
    :param proven: whether the record answers everything that the run was to answer.
    :param replace: end a run of another description that goes on. Without it, that one is left alone.
    """
    goes_on = live is not None and ended is None
    if goes_on and live != wanted:
        return SUBMIT if replace else LEAVE
    if goes_on:
        return KEEP if endless else ADOPT
    if recorded == wanted:
        return KEEP if proven else PROBE
    if live == wanted and ended == "Completed":
        return ADOPT  # completed while nobody watched: record it
    return SUBMIT
