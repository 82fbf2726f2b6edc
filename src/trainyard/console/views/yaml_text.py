"""JSON as YAML for people to read, with nothing but what JSON has: the console's image needs no YAML library for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""That YAML 1.1 takes for something else than text."""


def text(value: Any) -> str:
    """A document, with a line end."""
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
        # A list stands below its key without an indent, as kubectl writes it.
        indent = "  " if isinstance(value, dict) else ""
        yield from (f"{indent}{line}" if line else "" for line in _lines(value))
    elif isinstance(value, str) and _block(value):
        yield f"{key} |" + ("" if value.endswith("\n") else "-")
        yield from (f"  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{key} {_scalar(value)}"


def _block(value: str) -> bool:
    """Whether a text can stand as lines: several, all printable, none that begins or ends so that YAML would change
    it."""
    lines = value.removesuffix("\n").split("\n")
    good = all(line == line.rstrip() and (not line or line.isprintable()) for line in lines)
    return len(lines) > 1 and bool(lines[0]) and bool(lines[-1]) and not lines[0].startswith(" ") and good


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)
