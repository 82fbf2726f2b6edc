"""The one place where commands print: texts from outside are cleaned here, and none of them is taken for markup."""

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
"""Columns of a file or a pipe, where no terminal breaks a line."""
Cell = str | tuple[str, str] | Text
"""A text, or a text and its style."""
_DEPTH = -50
"""Where a document of ours begins in levels of `plain`, which are for what a program prints."""


class Terminal(Console):
    """The standard output: as wide as its terminal, and wide enough for every row where it is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)
        if not self.is_terminal and "width" not in options:
            self.width = WIDE

    def on_broken_pipe(self) -> None:
        """Continue without an output, as for every other text; Rich would end with 1."""
        drop_output()


def drop_output() -> None:
    """Send what is left of the output nowhere: the reader, `head` for one, has enough, and the status is still due."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(text: str, *, err: bool = False, newline: bool = True) -> None:
    try:
        click.echo(text, err=err, nl=newline)
    except BrokenPipeError:
        drop_output()


def echo(text: object = "", *, err: bool = False, newline: bool = True) -> None:
    """Print a text without commands to a terminal.

    :param err: on standard error.
    """
    _print(clean(str(text)), err=err, newline=newline)


def line(text: str) -> None:
    """Print one of lines that may never end.

    :raises BrokenPipeError: the reader has enough.
    """
    click.echo(clean(text))


def raw(text: str | bytes, *, newline: bool = True) -> None:
    """Print a text as it is, for a reader who asks for that.

    :raises BrokenPipeError: the reader has enough.
    """
    click.echo(text, nl=newline)


def show_json(document: Mapping[str, Any]) -> None:
    """Print a document that every reader of JSON takes: no NaN, no infinity, no controls.

    :param document: with a field `schema`, a number that changes when a field gets another meaning.
    """
    assert "schema" in document, "a document of a command names its schema"
    _print(json.dumps(plain(document, _DEPTH), indent=2, allow_nan=False))


def cell(value: Cell) -> Text:
    """A cell whose text is shown as it is, with its style round it."""
    if isinstance(value, Text):
        return value
    text, style = (value, "") if isinstance(value, str) else value
    return Text(clean(text), style)


class Rows:
    """A table of texts; nothing of a cell is cut off.

    :param names: heads of the columns.
    :param right: heads of columns of numbers.
    :param whole: heads of columns that are never broken into lines.
    """

    def __init__(self, names: Sequence[str], *, right: Sequence[str] = (), whole: Sequence[str] = ()) -> None:
        self._table = Table(box=None, pad_edge=False, header_style="bold")
        for name in names:
            justify: Any = "right" if name in right else "left"
            self._table.add_column(name, no_wrap=name in whole, overflow="fold", justify=justify)

    def add(self, *cells: Cell) -> None:
        self._table.add_row(*map(cell, cells))

    def show(self, console: Console, empty: str) -> None:
        """Print the table, or a sentence where it has no row."""
        console.print(self._table if self._table.row_count else Text(empty))


def show_line(console: Console, text: Cell) -> None:
    """Print a line below or above a table, at the console's width."""
    console.print(cell(text))
