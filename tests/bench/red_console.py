"""A console client without a browser: login, pages, and checks of their text."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from stand import NAMESPACE, Stand
from timed import BenchError

PAGE_SECONDS = 5.0
"""Maximum time for a page: a console that is busy with an attack is slower."""
MOST_MEMORY = 160e6
"""Maximum bytes of the console during an attack; its pod may have 256 MiB."""
POD = "trainyard-console/console-"
BOARDS = 30444
"""The node port of TensorBoards, the role's default."""
MARKUP = "<script>alert(29)</script>"
"""Markup that an attacker writes wherever possible; no page may contain it unescaped."""


class Visitor:
    """A client of the console that verifies its certificate and keeps the cookie of a login.

    :param address: URL of the console.
    """

    def __init__(self, address: str, authority: Path) -> None:
        self.host = urlsplit(address).hostname or ""
        self.port = urlsplit(address).port or 443
        self._trusted = ssl.create_default_context(cafile=str(authority))
        self._cookie = ""

    def ask(
        self, path: str, method: str = "GET", body: str = "", port: int = 0, **headers: str
    ) -> tuple[int, bytes, str]:
        """Return status, body and cookie of an answer.

        :param port: another port than that of the pages.
        """
        own = {"Cookie": self._cookie} if self._cookie else {}
        http_ = http.client.HTTPSConnection(self.host, port or self.port, timeout=20, context=self._trusted)
        try:
            http_.request(method, path, body.encode() or None, {**own, **headers})
            answer = http_.getresponse()
            return answer.status, answer.read(), answer.getheader("Set-Cookie") or ""
        finally:
            http_.close()

    def log_in(self, token: str) -> int:
        """Log in and return the status: 303 if the login is accepted."""
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"https://{self.host}:{self.port}"}
        status, _, cookie = self.ask("/login", "POST", urlencode({"token": token}), **form)
        if status == 303:
            self._cookie = cookie.partition(";")[0]
        return status

    def pages(self, *runs: str) -> list[str]:
        """Return the faults of all pages, as HTML and as JSON, a sentence each.

        :param runs: names of runs whose pages are included.
        """
        paths = ["/runs", *(f"/runs/{NAMESPACE}/{quote(run)}" for run in runs), "/nodes", "/receipts"]
        paths.append(f"/cluster/core/v1/pods?namespace={NAMESPACE}")
        wrong = []
        for path in paths:
            for begin in ("/api/v1", "") if path != "/runs" else ("/api/v1",):
                started = time.monotonic()
                status, body, _ = self.ask(begin + path)
                wrong += [f"{begin}{path} {each}" for each in faults(status, body, time.monotonic() - started, begin)]
        status, body, _ = self.ask("/")
        return wrong + [f"/ {each}" for each in faults(status, body, 0.0, "")]


def faults(status: int, body: bytes, seconds: float, begin: str) -> list[str]:
    """Return the faults of an answer.

    :param begin: beginning of its path; empty for HTML, otherwise JSON.
    """
    wrong = [] if status == 200 else [f"is answered with {status}"]
    wrong += [] if seconds < PAGE_SECONDS else [f"took {seconds:.1f} s"]
    wrong += ["has a byte that is none of a text"] if re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", body) else []
    if not begin:
        return wrong + (["has markup of an attacker"] if MARKUP.encode() in body else [])
    try:
        json.loads(body, parse_constant=_refuse)
    except ValueError as error:
        wrong.append(f"is no JSON: {error}")
    return wrong


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def console_memory(stand: Stand) -> float:
    """Return the console's bytes from the metrics API.

    :raises BenchError: it does not list the console.
    """
    from console_memory import usage

    found = [used for name, used in usage(stand).items() if name.startswith(POD)]
    if len(found) != 1:
        raise BenchError(f"The usage API names {len(found)} pods of the console.")
    return found[0]


def restarts(stand: Stand) -> str:
    """Return the console's pods, and the number of restarts of their containers."""
    pods = [each for each in stand.api.list("v1", "Pod", "trainyard-console") if "console-" in each["metadata"]["name"]]
    states = {each["metadata"]["name"]: each["status"].get("containerStatuses") or [] for each in pods}
    return json.dumps({name: [one["restartCount"] for one in each] for name, each in sorted(states.items())})


def console_faults(stand: Stand, visitor: Visitor, before: str, *runs: str) -> list[str]:
    """Return the faults of the console after an attack: its pages, memory and restarts."""
    used = console_memory(stand)
    wrong = [] if used < MOST_MEMORY else [f"the console has {used / 1e6:.0f} MB"]
    wrong += [] if restarts(stand) == before else [f"the console was {before} and is {restarts(stand)}"]
    return wrong + visitor.pages(*runs)
