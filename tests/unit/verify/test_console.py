"""How people reach the console: in the receipt, and as the last words of a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.verify.test_site import HEALTHY, settings
from trainyard.kube.api import Api
from trainyard.unmanaged.foreign import World
from trainyard.verify import site as verify_site
from trainyard.verify.access_checks import Access, ConsoleSeen
from trainyard.verify.observation import Unread
from trainyard.verify.site import Site

WANTED = {"ca_file": "/ca.crt", "name": "", "user": "alice"}


def receipt(
    monkeypatch: pytest.MonkeyPatch, seen: ConsoleSeen | Unread, **changes: Any
) -> tuple[dict[str, Any], list[str]]:
    access = Access(serving=True, requests=[], world=World(), usage=["cp1", "w1"], console=seen)
    monkeypatch.setattr(verify_site, "observe_access", lambda *_: access)
    site = Site(settings(**{"console": WANTED, **changes}), lambda _: Api(ApiServer(HEALTHY)))
    site.plan()
    return site.receipt, site.result()["table"][-2:]


@pytest.mark.parametrize(
    ("seen", "lines"),
    [
        (ConsoleSeen("https://10.1.0.10:30443"), ["https://10.1.0.10:30443", "trainyard token alice"]),
        (ConsoleSeen(), ["trainyard console", "trainyard token alice"]),
        # Where it is, although something is wrong with it.
        (ConsoleSeen("https://10.1.0.10:30443", trouble="x"), ["https://10.1.0.10:30443", "trainyard token alice"]),
    ],
)
def test_the_last_two_lines(monkeypatch: pytest.MonkeyPatch, seen: ConsoleSeen, lines: list[str]) -> None:
    found, last = receipt(monkeypatch, seen)
    assert [line.split(maxsplit=1)[1].strip() for line in last] == lines
    assert list(found["console"].values()) == lines


@pytest.mark.parametrize("seen", [ConsoleSeen(trouble="this cluster has no console"), Unread("forbidden")])
def test_no_word_of_what_is_not_there(monkeypatch: pytest.MonkeyPatch, seen: ConsoleSeen | Unread) -> None:
    found, last = receipt(monkeypatch, seen)
    assert "console" not in found and last[-1].startswith("receipt")


def test_nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "console" not in receipt(monkeypatch, ConsoleSeen("https://a:1"), console={})[0]


@pytest.mark.parametrize(
    ("file", "said"),
    [("", "run site.yml, which renews it"), ("/etc/ssl/console.crt", "put a new one into /etc/ssl/console.crt")],
)
def test_who_renews_its_certificate(monkeypatch: pytest.MonkeyPatch, file: str, said: str) -> None:
    seen = ConsoleSeen("https://a:1", ends=datetime.now(UTC) + timedelta(days=10))
    found, _ = receipt(monkeypatch, seen, console={**WANTED, "certificate_file": file})
    assert [said in each for each in found["warnings"] if "certificate of console" in each] == [True]


def test_its_check_is_part_of_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = receipt(monkeypatch, ConsoleSeen("https://a:1", trouble="its pod is not ready"))
    assert found["verdict"] == "fail"
    assert [check["name"] for check in found["checks"] if check["result"] == "fail"] == ["console"]
