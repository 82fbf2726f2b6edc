"""The notifier: send a message to commands, as JSON on standard input, and to webhooks over TLS.

It serves whatever has something to announce. It never raises, and each hook has a time limit.
"""

from __future__ import annotations

import json
import math
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import urlsplit

from .command import run
from .errors import TrainyardError
from .waiter import CLOCK, Clock

COMMAND_SECONDS = 30.0
WEBHOOK_SECONDS = 10.0
TRIES = 3
HANDED_ON = ("PATH", "LANG", "HOME")
"""Environment variables that a command receives."""

PAUSE_SECONDS = 2.0
"""Pause between two tries of a webhook."""

Post = Callable[[str, bytes, float], int]
"""(address, body, seconds) -> status of HTTP. Raises OSError; the errors of urllib are subclasses."""


@dataclass(frozen=True)
class Failure:
    """A failed hook.

    :param hook: its name in the inventory.
    :param tries: number of calls.
    :param reason: one clause; never the address, which may hold a token.
    """

    hook: str
    tries: int
    reason: str

    def __str__(self) -> str:
        times = "" if self.tries == 1 else f" {self.tries} times"
        return f"the hook {self.hook} failed{times}: {self.reason}"


def call_hooks(
    hooks: Sequence[Mapping[str, Any]],
    message: Mapping[str, Any],
    *,
    command: Callable[..., CompletedProcess[str]] = run,
    post: Post | None = None,
    clock: Clock = CLOCK,
    left: Callable[[], float] = lambda: math.inf,
) -> list[Failure]:
    """Call each hook with a message, and return the failures. They do not change the exit status of a run.

    :param hooks: `name`, and `command` (argv; receives the message as JSON on standard input) or `webhook` (https).
    :param message: plain data without secrets.
    :param left: returns the remaining seconds of the run for all hooks.
    """
    body = json.dumps(message, sort_keys=True).encode()
    failures = []
    for index, hook in enumerate(hooks):
        name = str(hook.get("name") or f"number {index + 1}")
        try:
            failure = (
                (0, "the time of the run was up")
                if left() <= 0
                else _webhook(str(hook["webhook"]), body, post or _post, clock, left)
                if hook.get("webhook")
                else _command([str(word) for word in hook["command"]], body, command, min(COMMAND_SECONDS, left()))
            )
        except Exception as error:  # a hook is foreign code and configuration; the run continues
            failure = 1, f"{type(error).__name__}"
        if failure:
            failures.append(Failure(name, *failure))
    return failures


def _command(
    argv: list[str], body: bytes, command: Callable[..., CompletedProcess[str]], seconds: float
) -> tuple[int, str] | None:
    try:
        # The service's environment has the paths of the vault's password and of all credentials.
        env = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        command(argv, timeout=seconds, stdin=body, cwd="/", env={"LANG": "C.UTF-8", **env}, inherit=False)
    except TrainyardError as error:
        return 1, error.message.rstrip(".")
    return None


def _webhook(address: str, body: bytes, post: Post, clock: Clock, left: Callable[[], float]) -> tuple[int, str] | None:
    if urlsplit(address).scheme != "https":
        return 0, "its address is not an https URL"
    reason = ""
    for attempt in range(TRIES):
        if attempt:
            clock.sleep(PAUSE_SECONDS)
        seconds = min(WEBHOOK_SECONDS, left())
        if seconds <= 0:
            return attempt, f"{reason}; the time of the run was up"
        try:
            status = _bounded(partial(post, address, body, seconds), seconds)
        except TimeoutError:
            reason = f"no answer within {seconds:.0f} s"
        except (OSError, HTTPException) as error:
            reason = _said(error)
        else:
            if 200 <= status < 300:
                return None
            reason = f"the server answered with status {status}"
    return TRIES, reason


def _bounded(work: Callable[[], int], seconds: float) -> int:
    """Return the result of work within a time limit. A server that sends slowly can exceed the limits of urllib.

    :raises TimeoutError: the work has not ended; its thread ends with the process.
    """
    results: list[int] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again in the waiting thread
            errors.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: they could lead away from TLS, and turn a POST into a GET."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _post(address: str, body: bytes, seconds: float) -> int:
    """Send a POST with a certificate check, and return the status."""
    request = urllib.request.Request(address, data=body, headers={"Content-Type": "application/json"}, method="POST")  # noqa: S310 - https, checked by the caller
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return int(error.code)


def _said(error: Exception) -> str:
    """Return why a call failed, without its address."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return f"no answer within {WEBHOOK_SECONDS:.0f} s"
    return str(getattr(reason, "verify_message", None) or getattr(reason, "strerror", None) or type(reason).__name__)
