"""Convert texts to their declared types. `-e name=false` and an INI inventory can give only texts."""

from __future__ import annotations

import math
import re
from typing import Any

SCALARS = ("bool", "int", "float")

_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
"""The words of Ansible's filter `bool`, which roles use. It converts all other texts, such as "y", to false."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
"""A template may print the text unchanged, so only the canonical form of a number is accepted."""


def typed(value: Any, kind: str) -> Any:
    """Convert a value to a type.

    :param kind: bool, int or float.
    :raises ValueError: the value does not have this type.
    """
    if kind == "bool":
        # 1 and 0 are accepted; 1.0 and 0.0 are not.
        word = str(value).lower()
        if isinstance(value, (bool, int, str)) and word in _BOOLEANS:
            return _BOOLEANS[word]
    elif isinstance(value, bool):
        pass
    elif kind == "int" and (isinstance(value, int) or (isinstance(value, str) and _WHOLE.fullmatch(value))):
        return int(value)
    elif kind == "float" and isinstance(value, (int, float, str)) and math.isfinite(number := float(value)):
        return number
    raise ValueError(f"{value!r} is not of the type {kind}")
