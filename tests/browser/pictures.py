"""The pictures of README.md and docs/: where they lie, which of them documents show, and how old they are."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "src" / "trainyard" / "console"
PICTURES = ROOT / "docs" / "pictures"
DIGEST = PICTURES / "pages.sha256"
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "tasks" / "console.md")
WIDTH, HEIGHT = 1280, 800
LARGEST = 150_000
"""Bytes of a picture."""
_SHOWN = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")


def digest(console: Path = CONSOLE) -> str:
    """Hash of everything that the pages look by: templates, styles, scripts."""
    found = hashlib.sha256()
    for folder in ("templates", "static"):
        for path in sorted((console / folder).rglob("*")):
            if path.is_file():
                found.update(f"{path.relative_to(console)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def shown(document: Path) -> list[Path]:
    """Files of the pictures that a document shows, in their order."""
    return [(document.parent / each).resolve() for each in _SHOWN.findall(document.read_text(encoding="utf-8"))]


def wanted() -> set[str]:
    """Names of the pictures that the documents show."""
    return {path.stem for document in DOCUMENTS for path in shown(document) if path.parent == PICTURES}
