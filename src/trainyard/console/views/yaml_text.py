"""Format JSON as readable YAML. Plain JSON values are enough, so the console's image needs no YAML library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""Words that are no text in YAML 1.1."""


def text(value: Any) -> str:
    """Return a document that ends with a line break."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _entry(f"{_scalar(str(key))}:", each)
    elif isinstance(value, list) and value:
        for each in value:
            inner = list(_lines(each))
            yield f"- {inner[0]}"
            yield from (f"  {line}" if line else "" for line in inner[1:])
    else:
        yield _scalar(value)


def _entry(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        yield key
        # A list below a key has no indent, as in the output of kubectl.
        indent = "  " if isinstance(value, dict) else ""
        yield from (f"{indent}{line}" if line else "" for line in _lines(value))
    elif isinstance(value, str) and _block(value):
        yield f"{key} |" + ("" if value.endswith("\n") else "-")
        yield from (f"  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{key} {_scalar(value)}"


def _block(value: str) -> bool:
    """Return whether a text can be a block scalar: several printable lines that YAML would not change."""
    lines = value.removesuffix("\n").split("\n")
    good = all(line == line.rstrip() and (not line or line.isprintable()) for line in lines)
    return len(lines) > 1 and bool(lines[0]) and bool(lines[-1]) and not lines[0].startswith(" ") and good


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)
