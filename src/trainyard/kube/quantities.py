"""Amounts of resources as Kubernetes writes them: `500m`, `2`, `1Gi`."""

from __future__ import annotations

import math
import re

from ..core.untrusted import number

_SUFFIXES = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
"""https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""

_FORM = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]{0,2})")
BYTES = ("memory", "ephemeral-storage", "storage")
"""Resources that are counted in bytes; `hugepages-2Mi` and its like, too."""


def amount(quantity: object) -> float:
    """A quantity as a number: CPUs, bytes, pieces.

    :raises ValueError: it is none.
    """
    match = _FORM.fullmatch(str(quantity).strip())
    value = number(match[1]) if match else None
    if match is None or value is None or match[2] not in _SUFFIXES:
        raise ValueError(f"{quantity!r} is no quantity")
    return value * _SUFFIXES[match[2]]


def pieces(quantity: object) -> int:
    """A quantity of things that are counted, such as GPUs; 0 where it is none."""
    try:
        return max(0, math.floor(amount(quantity)))
    except (ValueError, OverflowError):
        return 0


def shown(resource: str, number: float) -> str:
    """An amount of a resource for people: `1.5`, `3.2Gi`."""
    if resource in BYTES or resource.startswith("hugepages-"):
        for unit in ("Ti", "Gi", "Mi", "Ki"):
            if abs(number) >= _SUFFIXES[unit]:
                return f"{round(number / _SUFFIXES[unit], 1):g}{unit}"
    return f"{round(number, 3):g}"
