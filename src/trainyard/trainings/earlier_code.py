"""A run that the project's own code ran before an upgrade of the project.

The hash of a run names the image of its code, and every release of the project has another one. A run that differs in
nothing else has been done: repeating it would cost days of GPUs and prove what is proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..core.untrusted import at, items, line
from .jobset import spec_hash
from .model import Training

_VOLUME = "code"


def code_of(runner: Mapping[str, Any] | None) -> str:
    """Return the image of code that the object of a run, or its kept manifest, mounts; empty for none."""
    jobs = [at(each, "template", "spec") for each in items(at(runner, "spec", "replicatedJobs"))]
    for job in jobs or [at(runner, "spec")]:
        for volume in items(at(job, "template", "spec", "volumes")):
            if at(volume, "name") == _VOLUME:
                return line(at(volume, "image", "reference"))
    return ""


def as_it_ran(training: Training, known: str | None, codes: Iterable[str]) -> Training:
    """Return the training with the code that it ran with, if it differs from what is asked for in that alone.

    :param known: the hash of what ran.
    :param codes: images of code that it may have had. They come from the cluster: one that is invented gives no equal
        hash, because `known` is SHA-256 of all that decides what a run does.
    :return: the training itself where it is another run, or has a folder of code of its own.
    """
    if training.program or not training.code or not known or known == spec_hash(training):
        return training
    earlier = (replace(training, code=each) for each in codes if each)
    return next((each for each in earlier if spec_hash(each) == known), training)
