"""The action plugin that shows a module's progress lines while it runs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import ClassVar

import pytest

from plugins.action import bundle


class Screen:
    """Stands for Ansible's display."""

    lines: ClassVar[list[str]] = []

    def display(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> type[Screen]:
    monkeypatch.setattr(Screen, "lines", [])
    monkeypatch.setattr(bundle, "Display", Screen)
    monkeypatch.setattr(bundle, "POLL_SECONDS", 0.01)
    return Screen


def test_whole_lines_are_shown_as_they_come(tmp_path: Path, screen: type[Screen]) -> None:
    path = tmp_path / "progress"
    path.write_text("first\nsec", encoding="utf-8")
    ended = threading.Event()
    follower = threading.Thread(target=bundle._follow, args=(str(path), ended))
    follower.start()
    with path.open("a", encoding="utf-8") as stream:
        stream.write("ond\nthird\n")
    ended.set()
    follower.join(timeout=10)
    assert not follower.is_alive()
    assert screen.lines == ["    first", "    second", "    third"]
