"""What the tables of all commands have in common: nothing of a cell is cut off."""

from __future__ import annotations

from rich.console import Console

WIDE = 1000
"""Columns of a file or a pipe, where nobody looks at a line's end."""


def console() -> Console:
    """The standard output: as wide as its terminal, and wide enough for every row where it is none."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDE)
