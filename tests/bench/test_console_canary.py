"""Tests that the search finds a planted token, whole, in parts, and encoded."""

from __future__ import annotations

import base64
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import console_canary
import pytest
from console_canary import PIECE, files_with, needles, processes, texts_with

HEAD = "eyJhbGciOiJSUzI1NiIsImtpZCI6InBIOHMifQ.eyJpc3MiOiJrdWJlcm5ldGVzIiwic3ViIjoidXNlci1hbGljZSJ9"
SIGNATURE = "".join(chr(ord("A") + (7 * place + place // 26) % 26) for place in range(342))
TOKEN = f"{HEAD}.{SIGNATURE}"


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Authorization: Bearer {TOKEN}", id="the token"),
        pytest.param(f"login {SIGNATURE}", id="its signature alone"),
        pytest.param(textwrap.fill(f"a line that was broken: {TOKEN}", 100), id="in lines"),
        pytest.param(f"cut: {TOKEN[:250]} ...", id="its beginning"),
        pytest.param(f'{{"data": {{"token": "{coded(TOKEN)}"}}}}', id="in a Secret"),
        pytest.param(coded(f"x{TOKEN}\n"), id="in a Secret, a place further"),
        pytest.param(coded(f"xy{TOKEN}"), id="in a Secret, two places further"),
    ],
)
def test_it_is_found_where_it_was_put(text: str, tmp_path: Path) -> None:
    texts = {"clean": "nothing of it", "planted": f"before {text} after"}
    assert texts_with(TOKEN, texts) == ["planted"]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.log").write_bytes(b"\xff\x00" + text.encode())
    (tmp_path / "empty").touch()
    (tmp_path / "other").write_text("nothing of it")
    assert files_with(TOKEN, [tmp_path]) == (3, [tmp_path / "logs" / "run.log"])


def test_it_is_found_across_the_parts_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_canary, "PART", 100)
    (tmp_path / "log").write_text("x" * 190 + SIGNATURE[:PIECE] + "x" * 300)
    assert files_with(TOKEN, [tmp_path]) == (1, [tmp_path / "log"])


def test_what_says_whose_it_is_is_no_secret() -> None:
    assert texts_with(TOKEN, {"claims": HEAD, "another": f"{HEAD}.{SIGNATURE[::-1]}"}) == []


def test_what_is_no_token_cannot_be_looked_for() -> None:
    with pytest.raises(ValueError, match="shorter than a piece"):
        needles("token")


def test_a_token_on_a_command_line_is_seen() -> None:
    with processes() as seen:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(1)", "--token", TOKEN], check=True, timeout=60)
    assert texts_with(TOKEN, {"processes": "\n".join(seen)}) == ["processes"]
    with processes() as seen:
        time.sleep(0.5)
    assert seen and texts_with(TOKEN, {"processes": "\n".join(seen)}) == []
