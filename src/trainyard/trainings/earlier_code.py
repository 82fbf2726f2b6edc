"""Runs that used the project's code of an earlier release.

The hash of a run includes its code image, which changes with every release of the project. A run that differs in
nothing else is not repeated: that would cost days of GPU time and prove nothing new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..core.untrusted import at, items, line
from .jobset import spec_hash
from .model import Training
from .template import CODE_VOLUME


def code_of(runner: Mapping[str, Any] | None) -> str:
    """Return the code image that the object of a run, or its kept manifest, mounts; empty for none."""
    jobs = [at(each, "template", "spec") for each in items(at(runner, "spec", "replicatedJobs"))]
    for job in jobs or [at(runner, "spec")]:
        for volume in items(at(job, "template", "spec", "volumes")):
            if at(volume, "name") == CODE_VOLUME:
                return line(at(volume, "image", "reference"))
    return ""


def as_it_ran(training: Training, known: Collection[str | None], codes: Iterable[str]) -> Training:
    """Return the training with the code image that it ran with, if the requested one differs in nothing else.

    :param known: hashes of the ended object and of the recorded success of the run; None for none.
    :param codes: candidate code images, read from the cluster. An invented one cannot match, because a hash is the
        SHA-256 of everything that decides what a run does.
    :return: the training unchanged if it is another run or has its own code folder.
    """
    if training.program or not training.code or spec_hash(training) in known:
        return training
    earlier = (replace(training, code=each) for each in codes if each)
    return next((each for each in earlier if spec_hash(each) in known), training)
