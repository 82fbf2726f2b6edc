"""Progress of a long-running module: lines in a file that the action plugin of the same name displays."""

from __future__ import annotations

from .untrusted import clean


class Progress:
    """Append lines to a file, or do nothing without a path.

    :param path: file created by the action plugin, or None if the module runs without one.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path

    def say(self, line: str) -> None:
        if self._path:
            with open(self._path, "a", encoding="utf-8") as stream:
                stream.write(" ".join(clean(line).split("\n")) + "\n")
