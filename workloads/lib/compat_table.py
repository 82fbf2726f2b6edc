"""The table `compat.json`, and how its versions are compared."""

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
    """The values of a typed column."""
    return _table()["typed"][name]["values"]


def releases() -> Mapping[str, Any]:
    """The columns of every release of TensorFlow, oldest first."""
    return dict(_table()["tensorflow"])


def row(tensorflow: str) -> Mapping[str, Any]:
    """The columns of a release; `tensorflow` is any version of it."""
    return dict(releases()[release(tensorflow)])


def column(name: str) -> Iterator[str]:
    """Every value that a column of versions has."""
    rows = releases()
    if name == "tensorflow":
        yield from rows
    elif name == "driver":
        # The newest branch that still drives what the next one has dropped is one below it.
        yield from [*typed("driver").values(), *(f"{int(first) - 10}" for first in typed("driver_drops"))]
    else:
        for each in rows.values():
            found = each["keras" if name == "keras_version" else name]
            yield from found if isinstance(found, list) else [found]


def serves(value: str, needed: str) -> bool:
    """Whether a library does where another version is needed: the same first number, and not older.

    Compared as exactly as both are written: the CUDA that a node reports has no third number.
    """
    asked, least = number(value), number(needed)
    length = min(len(asked), len(least))
    return asked[0] == least[0] and asked[:length] >= least[:length]


def release(text: str) -> str:
    """The first two numbers."""
    return ".".join(str(part) for part in number(text)[:2])


def number(text: str) -> Version:
    """A version that can be compared; nothing for what is none."""
    return version(text) or ()


def version(text: str) -> Version | None:
    """The numbers of a version, without what follows a plus sign; None for what is none."""
    try:
        return tuple(int(part) for part in text.split("+")[0].split("."))
    except ValueError:
        return None
