"""Hooks: what they are given, and that one that fails, hangs or lies ends nothing."""

from __future__ import annotations

import json
import ssl
import threading
import urllib.error
from collections.abc import Callable
from http.client import BadStatusLine
from pathlib import Path
from typing import Any

import pytest

from trainyard.core import notifier
from trainyard.core.waiter import Clock

MESSAGE = {"state": "person", "site": "mine"}
URL = "https://chat.example/hooks/secret-token"


class Still(Clock):
    """Notes its sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def called(posts: list[Any]) -> tuple[Callable[[str, bytes, float], int], list[bytes]]:
    """A webhook's server that answers with one of `posts` after the other: a status, or an error."""
    bodies = []

    def post(address: str, body: bytes, seconds: float) -> int:
        assert (address, seconds) == (URL, 10.0)
        bodies.append(body)
        answer = posts[len(bodies) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return int(answer)

    return post, bodies


REFUSED = urllib.error.URLError(ConnectionRefusedError(111, "Connection refused"))


@pytest.mark.parametrize(
    ("posts", "tries", "said"),
    [
        ([200], 1, ""),
        ([204], 1, ""),
        ([500, 200], 2, ""),
        ([REFUSED, REFUSED, 202], 3, ""),
        ([REFUSED] * 3, 3, "the hook chat failed 3 times: Connection refused"),
        ([503] * 3, 3, "the server answered with status 503"),
        ([302] * 3, 3, "the server answered with status 302"),
        ([TimeoutError()] * 3, 3, "no answer within 10 s"),
        ([urllib.error.URLError(TimeoutError())] * 3, 3, "no answer within 10 s"),
        ([BadStatusLine("x")] * 3, 3, "BadStatusLine"),
        ([ssl.SSLError(1, "certificate verify failed")] * 3, 3, "certificate verify failed"),
    ],
)
def test_a_webhook(posts: list[Any], tries: int, said: str) -> None:
    clock, (post, bodies) = Still(), called(posts)
    found = notifier.call_hooks([{"name": "chat", "webhook": URL}], MESSAGE, post=post, clock=clock)
    assert [json.loads(body) for body in bodies] == [MESSAGE] * tries
    assert clock.slept == [notifier.PAUSE_SECONDS] * (tries - 1)
    assert len(found) == bool(said)
    assert all(said in str(failure) and "secret-token" not in str(failure) for failure in found)


def test_a_webhook_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "WEBHOOK_SECONDS", 0.05)
    ended = threading.Event()
    try:
        (failure,) = notifier.call_hooks(
            [{"name": "chat", "webhook": URL}], MESSAGE, post=lambda *_: int(ended.wait(60)), clock=Still()
        )
    finally:
        ended.set()
    assert failure.tries == 3
    assert "no answer within" in failure.reason


@pytest.mark.parametrize("address", ["http://chat.example/x", "file:///etc/passwd", "chat.example"])
def test_nothing_is_sent_without_tls(address: str) -> None:
    post, bodies = called([])
    (failure,) = notifier.call_hooks([{"name": "chat", "webhook": address}], MESSAGE, post=post)
    assert bodies == []
    assert failure.reason == "its address is not an https URL"


def test_a_command_gets_the_message_on_its_standard_input(tmp_path: Path) -> None:
    out = tmp_path / "out"
    listed = [
        {"name": "gone", "command": ["/nonexistent/mail", "root"]},
        {"name": "no", "command": ["/bin/sh", "-c", "echo no room >&2; exit 3"]},
        {"name": "nothing"},
        {"name": "mail", "command": ["/usr/bin/tee", str(out)]},
    ]
    found = notifier.call_hooks(listed, MESSAGE)
    assert json.loads(out.read_text(encoding="utf-8")) == MESSAGE
    assert [(failure.hook, failure.tries) for failure in found] == [("gone", 1), ("no", 1), ("nothing", 1)]
    assert "no room" in found[1].reason


def test_a_command_sees_no_credential_of_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREDENTIALS_DIRECTORY", "ANSIBLE_VAULT_PASSWORD_FILE", "TRAINYARD_REVISION", "GIT_SSH_COMMAND"):
        monkeypatch.setenv(name, "/run/credentials/secret")
    seen = tmp_path / "environment"
    assert notifier.call_hooks([{"name": "a", "command": ["sh", "-c", f"env -u PWD > {seen}"]}], MESSAGE) == []
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert {"PATH", "HOME", "LANG"} <= names <= {"PATH", "HOME", "LANG", "_", "SHLVL", "OLDPWD"}
