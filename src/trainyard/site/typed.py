"""Values that arrive as texts, by their declared types: `-e name=false` and an INI inventory say nothing else."""

from __future__ import annotations

import math
import re
from typing import Any

SCALARS = ("bool", "int", "float")

_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
"""As Ansible's filter `bool` has them, which roles use. It takes every other text, such as "y", for false."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
"""A template may write the text as it is, so that only the form is taken that a number has when it is written."""


def typed(value: Any, kind: str) -> Any:
    """A value as its type.

    :param kind: bool, int or float.
    :raises ValueError: it has another type.
    """
    if kind == "bool":
        # 1 and 0 are whole numbers; 1.0 and 0.0 are none of the words.
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
