"""Resource quantities in Kubernetes' notation: `500m`, `2`, `1Gi`."""

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
"""Resources that are counted in bytes, in addition to `hugepages-*`."""


def amount(quantity: object) -> float:
    """Convert a quantity to a number of CPUs, bytes or pieces.

    :raises ValueError: it is not a quantity.
    """
    match = _FORM.fullmatch(str(quantity).strip())
    value = number(match[1]) if match else None
    if match is None or value is None or match[2] not in _SUFFIXES:
        raise ValueError(f"{quantity!r} is not a quantity")
    return value * _SUFFIXES[match[2]]


def pieces(quantity: object) -> int:
    """Convert a quantity of countable items, such as GPUs, to an integer; 0 if it is invalid."""
    try:
        return max(0, math.floor(amount(quantity)))
    except (ValueError, OverflowError):
        return 0


def shown(resource: str, number: float) -> str:
    """Format an amount of a resource for display: `1.5`, `3.2Gi`."""
    if resource in BYTES or resource.startswith("hugepages-"):
        for unit in ("Ti", "Gi", "Mi", "Ki"):
            if abs(number) >= _SUFFIXES[unit]:
                return f"{round(number / _SUFFIXES[unit], 1):g}{unit}"
    return f"{round(number, 3):g}"
