"""Output of all commands. Texts from outside are cleaned here, and never interpreted as markup."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.untrusted import clean, plain

WIDE = 1000
"""Columns of a file or a pipe, so that no line is broken."""
Cell = str | tuple[str, str] | Text
"""A text, or a text and its style."""
_DEPTH = -50
"""Start level of our own documents for `plain`, whose limit is meant for the output of other programs."""


class Terminal(Console):
    """The standard output. It has the width of its terminal; without a terminal it is wide enough for every row."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)
        if not self.is_terminal and "width" not in options:
            self.width = WIDE

    def on_broken_pipe(self) -> None:
        """Continue without output, like all other texts here. Rich would exit with 1."""
        drop_output()


def drop_output() -> None:
    """Discard the rest of the output. A reader such as `head` has ended, but the exit status is still needed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(text: str, *, err: bool = False, newline: bool = True) -> None:
    try:
        click.echo(text, err=err, nl=newline)
    except BrokenPipeError:
        drop_output()


def echo(text: object = "", *, err: bool = False, newline: bool = True) -> None:
    """Print a text without control sequences.

    :param err: print to standard error.
    """
    _print(clean(str(text)), err=err, newline=newline)


def line(text: str) -> None:
    """Print one line of an endless output.

    :raises BrokenPipeError: the reader has ended.
    """
    click.echo(clean(text))


def raw(text: str | bytes, *, newline: bool = True) -> None:
    """Print a text unchanged, on request of the reader.

    :raises BrokenPipeError: the reader has ended.
    """
    click.echo(text, nl=newline)


def show_json(document: Mapping[str, Any]) -> None:
    """Print a document as strict JSON: no NaN, no infinity, no control characters.

    :param document: with a field `schema`, a number that changes if a field changes its meaning.
    """
    assert "schema" in document, "a document of a command names its schema"
    _print(json.dumps(plain(document, _DEPTH), indent=2, allow_nan=False))


def cell(value: Cell) -> Text:
    """Return a cell with literal text and its style."""
    if isinstance(value, Text):
        return value
    text, style = (value, "") if isinstance(value, str) else value
    return Text(clean(text), style)


class Rows:
    """A table of texts. Cells are never truncated.

    :param names: heads of the columns.
    :param right: heads of the right-aligned columns, for numbers.
    :param whole: heads of columns without line breaks.
    """

    def __init__(self, names: Sequence[str], *, right: Sequence[str] = (), whole: Sequence[str] = ()) -> None:
        self._table = Table(box=None, pad_edge=False, header_style="bold")
        for name in names:
            justify: Any = "right" if name in right else "left"
            self._table.add_column(name, no_wrap=name in whole, overflow="fold", justify=justify)

    def add(self, *cells: Cell) -> None:
        self._table.add_row(*map(cell, cells))

    def show(self, console: Console, empty: str) -> None:
        """Print the table, or the sentence `empty` if it has no row."""
        console.print(self._table if self._table.row_count else Text(empty))


def show_line(console: Console, text: Cell) -> None:
    """Print a line below or above a table, at the console's width."""
    console.print(cell(text))
