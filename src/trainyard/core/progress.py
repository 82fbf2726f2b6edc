"""Progress of a long module: lines in a file that the action plugins of the same name show while it runs."""

from __future__ import annotations

from .untrusted import clean


class Progress:
    """Appends lines to a file; without a path it is silent.

    :param path: file made by the action plugin, or None when the module runs without it.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path

    def say(self, line: str) -> None:
        if self._path:
            with open(self._path, "a", encoding="utf-8") as stream:
                stream.write(" ".join(clean(line).split("\n")) + "\n")
