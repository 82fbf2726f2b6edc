"""Which strategy, loop, Keras, TensorFlow, Python and CUDA work together; the others are refused before they start.

The strategy table was measured with TensorFlow 2.21.0 (Keras 3.12 to 3.15, tf_keras 2.21); the version tables are
TensorFlow's tested build configurations (https://www.tensorflow.org/install/source#tested_build_configurations).
Standard library only, so that a controller without TensorFlow can ask too.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from lib.errors import ExitCode, InputError

STRATEGIES = ("parameter_server", "multi_worker_mirrored")
LOOPS = ("custom", "fit")
KERAS = ("none", "tf_keras", "keras3")

_REFUSED = {
    ("parameter_server", "custom", "keras3"): (
        "a Keras 3 optimizer loses steps under a coordinator (26 to 28 counted of 40)",
        "loop custom with keras tf_keras or none",
    ),
    ("parameter_server", "fit", "keras3"): ("model.fit of Keras 3 fails at its start", "loop fit with keras tf_keras"),
    ("multi_worker_mirrored", "fit", "keras3"): (
        "model.fit of Keras 3 cannot convert PerReplica values",
        "loop fit with keras tf_keras, or loop custom with keras3",
    ),
    ("parameter_server", "fit", "none"): ("model.fit is part of Keras", "loop custom with keras none"),
    ("multi_worker_mirrored", "fit", "none"): ("model.fit is part of Keras", "loop custom with keras none"),
}

_PYTHON = {
    (2, 16): ((3, 9), (3, 12)),
    (2, 17): ((3, 9), (3, 12)),
    (2, 18): ((3, 9), (3, 12)),
    (2, 19): ((3, 9), (3, 12)),
    (2, 20): ((3, 9), (3, 13)),
    (2, 21): ((3, 10), (3, 13)),
}
"""TensorFlow -> first and last Python with a wheel."""

_CUDA_MAJOR = 12
_DRIVER_FLOOR = (525, 60, 13)
"""Oldest driver for any CUDA 12 (https://docs.nvidia.com/deploy/cuda-compatibility, minor version compatibility)."""


@dataclass(frozen=True)
class Combination:
    """What a training wants to run with; versions as dotted text, empty means "not asked"."""

    strategy: str
    loop: str
    keras: str
    tensorflow: str = ""
    python: str = ""
    tf_keras: str = ""
    cuda: str = ""
    driver: str = ""


def check(wanted: Combination) -> None:
    """Return if the combination can work.

    :raises InputError: it cannot; the remedy names the nearest combination that does.
    """
    for name, value, known in (
        ("strategy", wanted.strategy, STRATEGIES),
        ("loop", wanted.loop, LOOPS),
        ("keras", wanted.keras, KERAS),
    ):
        if value not in known:
            raise InputError(f"{name} '{value}' is unknown.", f"Use one of {', '.join(known)}.")
    refused = _REFUSED.get((wanted.strategy, wanted.loop, wanted.keras))
    if refused:
        reason, nearest = refused
        raise InputError(
            f"strategy {wanted.strategy} with loop {wanted.loop} and keras {wanted.keras} cannot work: {reason}.",
            f"The nearest that works: {nearest}.",
        )
    _check_versions(wanted)
    _check_gpu(wanted)


def _check_versions(wanted: Combination) -> None:
    if not wanted.tensorflow:
        return
    release = _version("tensorflow", wanted.tensorflow)[:2]
    if release not in _PYTHON:
        raise InputError(
            f"tensorflow {wanted.tensorflow} is not a version that was tried.",
            f"Use {_text(min(_PYTHON))} to {_text(max(_PYTHON))}.",
        )
    if wanted.python:
        first, last = _PYTHON[release]
        if not first <= _version("python", wanted.python)[:2] <= last:
            raise InputError(
                f"tensorflow {wanted.tensorflow} has no wheel for python {wanted.python}.",
                f"Use python {_text(first)} to {_text(last)}.",
            )
    if wanted.keras == "tf_keras" and wanted.tf_keras and _version("tf_keras", wanted.tf_keras)[:2] != release:
        raise InputError(
            f"tf_keras {wanted.tf_keras} does not belong to tensorflow {wanted.tensorflow}.",
            f"Use tf_keras {_text(release)}.",
        )


def _check_gpu(wanted: Combination) -> None:
    if wanted.cuda and _version("cuda", wanted.cuda)[0] != _CUDA_MAJOR:
        raise InputError(f"TensorFlow's wheels are not built for cuda {wanted.cuda}.", f"Use CUDA {_CUDA_MAJOR}.")
    if wanted.driver and _version("driver", wanted.driver) < _DRIVER_FLOOR:
        raise InputError(
            f"driver {wanted.driver} is too old for CUDA {_CUDA_MAJOR}.", f"Use {_text(_DRIVER_FLOOR)} or newer."
        )


def _version(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split("+")[0].split("."))
    except ValueError:
        raise InputError(f"{name} version '{text}' is not dotted numbers.", "Use for example 2.21.0.") from None


def _text(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def main() -> int:
    """Command line: one flag per field of `Combination`; exit code 0 or 2."""
    parser = argparse.ArgumentParser(description="Refuse combinations that cannot train.")
    for field in Combination.__dataclass_fields__.values():
        parser.add_argument(f"--{field.name}", default="", required=field.name in ("strategy", "loop", "keras"))
    try:
        check(Combination(**vars(parser.parse_args())))
    except InputError as error:
        print(error, file=sys.stderr)
        return ExitCode.BAD_INPUT
    return ExitCode.TRAINED


if __name__ == "__main__":
    sys.exit(main())
