"""Read the table `compat.json`, and compare its versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

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


def row(tensorflow: str) -> Mapping[str, Any]:
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
