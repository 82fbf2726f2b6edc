"""Check early which topology, loop, Keras, TensorFlow, Python, CUDA, driver and GPU work together.

The table is `compat.json`. Its version columns come from TensorFlow's wheels (written by `compat_columns.py`); the
typed columns name their source. Standard library only, so that a controller without TensorFlow can use it.

Read the table `compat.json`, and compare its versions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

from engine.errors import ExitCode, InputError

TABLE = Path(__file__).parents[1] / "compat.json"

Version = tuple[int, ...]


@cache
def _table() -> Mapping[str, Any]:
    return dict(json.loads(TABLE.read_text(encoding="utf-8")))


def typed(name: str) -> Any:
    """Return the values of a typed column."""
    return _table()["typed"][name]["values"]


def releases() -> Mapping[str, Any]:
    """Return the columns of every TensorFlow release, oldest first."""
    return dict(_table()["tensorflow"])


def table_row(tensorflow: str) -> Mapping[str, Any]:
    """Return the columns of a release.

    :param tensorflow: any version of that release.
    """
    return dict(releases()[release(tensorflow)])


def column(name: str) -> Iterator[str]:
    """Yield every value of a column of versions."""
    rows = releases()
    if name == "tensorflow":
        yield from rows
    elif name == "driver":
        # A GPU dropped by a branch is still supported by the branch before it, ten lower.
        yield from [*typed("driver").values(), *(f"{int(first) - 10}" for first in typed("driver_drops"))]
    else:
        for each in rows.values():
            found = each["keras" if name == "keras_version" else name]
            yield from found if isinstance(found, list) else [found]


def serves(value: str, needed: str) -> bool:
    """Return whether a library satisfies a requirement: the same first number, and not older.

    Only the digits that both versions have are compared: the CUDA version that a node reports has no third number.
    """
    asked, least = number(value), number(needed)
    length = min(len(asked), len(least))
    return asked[0] == least[0] and asked[:length] >= least[:length]


def release(text: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(str(part) for part in number(text)[:2])


def number(text: str) -> Version:
    """Return a version as a comparable tuple; empty for invalid text."""
    return version(text) or ()


def version(text: str) -> Version | None:
    """Return the numbers of a version, without the part after a plus sign; None for invalid text."""
    try:
        return tuple(int(part) for part in text.split("+")[0].split("."))
    except ValueError:
        return None


STRATEGIES = ("parameter_server", "multi_worker_mirrored", "single")
LOOPS = ("custom", "fit")
KERAS = ("none", "tf_keras", "keras3")
NOT_ASKED = ""
CHANGED_LAST = ("keras", "loop", "driver", "tensorflow", "strategy")
"""Columns that are costly to change. Among proposals with equally many changes, one without these wins."""
NEVER_CHANGED = ("compute_capability",)
"""Columns that no proposal changes, because the hardware is given."""


@dataclass(frozen=True)
class Combination:
    """The components that a training requests. Versions are dotted text; empty means "not checked".

    :param keras_version: version of Keras 3. `cuda`, `cudnn` and `nccl` belong to the image, the rest to the node.
    """

    strategy: str
    loop: str
    keras: str
    tensorflow: str = NOT_ASKED
    python: str = NOT_ASKED
    tf_keras: str = NOT_ASKED
    cuda: str = NOT_ASKED
    driver: str = NOT_ASKED
    keras_version: str = NOT_ASKED
    cudnn: str = NOT_ASKED
    nccl: str = NOT_ASKED
    compute_capability: str = NOT_ASKED


def check(wanted: Combination) -> None:
    """Check that the combination can work.

    :raises InputError: it cannot; the remedy names the nearest working combination, with the fewest changes.
    """
    _check_words(wanted)
    why = reason(wanted)
    if why is None:
        return
    changes = nearest(wanted)
    if not changes:
        raise InputError(why, "No similar combination works. Leave some of the versions to the image.")
    raise InputError(why, f"Use the nearest match: {', '.join(f'{name} {value}' for name, value in changes.items())}.")


def nearest(wanted: Combination) -> dict[str, str]:
    """Return the columns to change, and their new values, so that the combination works; as few as possible.

    :returns: an empty mapping if it works unchanged, or if no change helps.
    """
    if reason(wanted) is None:
        return {}
    asked = {name: value for name, value in asdict(wanted).items() if value != NOT_ASKED and name not in NEVER_CHANGED}
    order = sorted(asked, key=lambda name: CHANGED_LAST.index(name) + 1 if name in CHANGED_LAST else 0)
    choices = {name: _choices(name, value) for name, value in asked.items()}
    for count in range(1, len(order) + 1):
        for names in combinations(order, count):
            for values in product(*(choices[name] for name in names)):
                changes = dict(zip(names, values, strict=True))
                if reason(replace(wanted, **changes)) is None:
                    return changes
    return {}


def reason(wanted: Combination) -> str | None:
    """Return why a combination cannot work, as a sentence; None if it can."""
    return next((why for rule in _RULES if (why := rule(wanted))), None)


def oldest_driver(cuda: str) -> str:
    """Return the oldest driver that supports a CUDA version; empty if the table does not list it."""
    return str(typed("driver").get(cuda.partition(".")[0], ""))


def old_driver(cuda: str, driver: str) -> str | None:
    """Return why a driver is too old for a CUDA version, as a sentence; None if it is not. Only the digits that the
    driver version has are compared, because an inventory may name only a branch."""
    floor, numbers = oldest_driver(cuda), number(driver)
    if not floor or numbers >= number(floor)[: len(numbers)]:
        return None
    return f"driver {driver} is too old for CUDA {cuda.partition('.')[0]}, which needs {floor} or newer."


def young_gpu(cuda: str, compute_capability: str) -> str | None:
    """Return why a GPU is too new for CUDA's libraries, as a sentence; None if it is not, or if either is unknown.

    According to NVIDIA's guides, compiled code runs on GPUs with the same first number; TensorFlow also ships PTX.
    """
    known = [most for first, most in typed("newest_gpu").items() if number(cuda) >= number(first)]
    if not known or number(compute_capability)[:1] <= number(known[-1]):
        return None
    return f"CUDA {cuda} has no code for a GPU of {compute_capability}: its newest are those of {known[-1]}.x."


def _check_words(wanted: Combination) -> None:
    """Check that enumerated values and version numbers are valid; invalid ones have no nearest alternative."""
    for name, known in (("strategy", STRATEGIES), ("loop", LOOPS), ("keras", KERAS)):
        if getattr(wanted, name) not in known:
            raise InputError(f"{name} '{getattr(wanted, name)}' is unknown.", f"Use one of {', '.join(known)}.")
    for name, value in list(asdict(wanted).items())[3:]:
        if value != NOT_ASKED and version(value) is None:
            raise InputError(f"{name} version '{value}' is not dotted numbers.", "Use for example 2.21.0.")


# --- rules: each returns a sentence, or None ------------------------------------------------------------------------


def _refused(wanted: Combination) -> str | None:
    for strategy, loop, keras, why in typed("refused"):
        if (wanted.strategy, wanted.loop, wanted.keras) == (strategy, loop, keras):
            return f"strategy {strategy} with loop {loop} and keras {keras} cannot work: {why}."
    return None


def _unknown_tensorflow(wanted: Combination) -> str | None:
    if wanted.tensorflow == NOT_ASKED or release(wanted.tensorflow) in releases():
        return None
    return f"tensorflow {wanted.tensorflow} is not in the table of tested versions."


def _no_wheel(wanted: Combination) -> str | None:
    if (
        NOT_ASKED in (wanted.tensorflow, wanted.python)
        or release(wanted.python) in table_row(wanted.tensorflow)["python"]
    ):
        return None
    return f"tensorflow {wanted.tensorflow} has no wheel for python {wanted.python}."


def _other_tf_keras(wanted: Combination) -> str | None:
    if wanted.keras != "tf_keras" or NOT_ASKED in (wanted.tensorflow, wanted.tf_keras):
        return None
    if release(wanted.tf_keras) == release(wanted.tensorflow):
        return None
    return f"tf_keras {wanted.tf_keras} does not belong to tensorflow {wanted.tensorflow}."


def _libraries(wanted: Combination) -> str | None:
    """Accept a library with the same first number that is not older: its vendor keeps the interface stable."""
    for name in ("cuda", "cudnn", "nccl"):
        value = getattr(wanted, name)
        rows = [table_row(wanted.tensorflow)] if wanted.tensorflow != NOT_ASKED else list(releases().values())
        if value != NOT_ASKED and not any(serves(value, row[name]) for row in rows):
            which = f"tensorflow {wanted.tensorflow}" if wanted.tensorflow != NOT_ASKED else "TensorFlow"
            return f"The wheels of {which} do not run on {name} {value}."
    return None


def _old_keras(wanted: Combination) -> str | None:
    if wanted.keras != "keras3" or NOT_ASKED in (wanted.tensorflow, wanted.keras_version):
        return None
    needed = table_row(wanted.tensorflow)["keras"]
    if number(wanted.keras_version) >= number(needed):
        return None
    return f"tensorflow {wanted.tensorflow} needs keras {needed} or newer, not {wanted.keras_version}."


def _old_driver(wanted: Combination) -> str | None:
    """Without a requested CUDA version, use that of the wheels, which all have the same first number."""
    if wanted.driver == NOT_ASKED:
        return None
    cuda = wanted.cuda or (table_row(wanted.tensorflow) if wanted.tensorflow else list(releases().values())[-1])["cuda"]
    return old_driver(cuda, wanted.driver)


def _unknown_gpu(wanted: Combination) -> str | None:
    """Reject a GPU without kernels in TensorFlow's wheels or CUDA's libraries, or without support in the driver."""
    if wanted.compute_capability == NOT_ASKED:
        return None
    capability = number(wanted.compute_capability)
    if wanted.tensorflow != NOT_ASKED:
        oldest = typed("compute_capability")[release(wanted.tensorflow)]
        if capability < number(oldest):
            gpu = f"a GPU of {wanted.compute_capability}, below {oldest}"
            return f"tensorflow {wanted.tensorflow} has no kernels for {gpu}."
    if why := young_gpu(wanted.cuda, wanted.compute_capability):
        return why
    for driver, oldest in typed("driver_drops").items():
        if wanted.driver and number(wanted.driver) >= number(driver) and capability < number(oldest):
            return f"driver {wanted.driver} does not drive a GPU of {wanted.compute_capability}, below {oldest}."
    return None


# The order matters: later rules look up the row of a release whose existence earlier rules have checked.
_RULES: tuple[Callable[[Combination], str | None], ...] = (
    _refused,
    _unknown_tensorflow,
    _no_wheel,
    _other_tf_keras,
    _old_keras,
    _libraries,
    _old_driver,
    _unknown_gpu,
)


def _choices(name: str, value: str) -> list[str]:
    """Return the values that a column can be changed to, the nearest first; of two equally near ones the newer."""
    words = {"strategy": STRATEGIES, "loop": LOOPS, "keras": KERAS}.get(name)
    if words:
        return sorted(
            (word for word in words if word != value), key=lambda word: abs(words.index(word) - words.index(value))
        )
    known = {text for text in column(name) if text != value}
    near = sorted(known, key=lambda text: (_distance(text, value), tuple(-part for part in number(text))))
    # CUDA versions newer than those of TensorFlow's wheels are untested by TensorFlow, so they come last.
    return near + [text for text in typed("newest_gpu") if name == "cuda" and text not in (*known, value)]


def _distance(one: str, other: str) -> Version:
    padded = [(*number(text), 0, 0, 0, 0)[:4] for text in (one, other)]
    return tuple(abs(a - b) for a, b in zip(*padded, strict=True))


def main() -> int:
    """Run the command line, with one flag per field of `Combination`; the exit code is 0 or 2."""
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
