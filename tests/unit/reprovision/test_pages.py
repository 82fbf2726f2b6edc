"""Pages and tables: what a host says shows as text, and nothing comes from outside."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.reprovision.reports import HOSTILE, report
from tests.unit.reprovision.sites import NOW, site
from trainyard.cli.reports import listed, local, shown, status_lines
from trainyard.drift.pages import html, index, markdown
from trainyard.drift.report import begun
from trainyard.drift.store import Store
from trainyard.schedule.status import status_of


class Elements(HTMLParser):
    """Names and attributes of a page's elements, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("page", [html(report()), index([report(headline=HOSTILE)])])
def test_a_page_has_no_script_and_nothing_from_outside(page: str) -> None:
    found = Elements(page)
    assert not {"script", "img", "link", "iframe", "object", "form", "base"} & set(found.names)
    assert not [name for name, _ in found.attributes if name.startswith("on") or name in ("src", "style")]
    links = [value for name, value in found.attributes if name == "href"]
    assert links and all(re.fullmatch(r"(\.\./)*[A-Za-z0-9_./-]+\.html", str(link)) for link in links)
    assert not re.search(r"https?:|url\(|@import", page)
    assert "<script>alert(1)</script>" in found.text, "it is shown as it was said"
    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e]", page)


def test_a_page_says_all_of_a_report() -> None:
    text = Elements(html(report())).text
    for told in (
        "2027-01-15 08:00 UTC converge", "exit 1: 2 items of drift, 1 for an operator", "3f2a91c (signed)", "41 s",
        "base: sysctl net.ipv4.ip_forward", "repaired, proven", "verdict pass", "worker1",
    ):  # fmt: skip
        assert told in text


@pytest.mark.parametrize("state", ["running", "interrupted"])
def test_a_run_without_an_end_has_a_page(state: str) -> None:
    page = html({**begun("report", "report", NOW), "id": "x", "state": state})
    assert state in Elements(page).text and "Nothing differs." in page


def test_markdown_shows_hostile_text_as_text() -> None:
    text = markdown(report())
    assert "<script" not in text and "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("| worker")]
    assert len(rows) == 4 and all(len(re.findall(r"(?<!\\)\|", row)) in (8, 4) for row in rows)
    assert r"\[x\]\(javascript:y\)" in text


def test_the_table_that_a_user_sees(capsys: pytest.CaptureFixture[str]) -> None:
    shown(report(), Console(width=400, highlight=False))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{local(NOW)}  converge  revision 3f2a91c (signed)   41 s   exit 1: 2 items of drift")
    assert re.split(r"\s{2,}", lines[1].strip()) == ["host", "since", "class", "what", "before -> after", "done"]
    assert re.split(r"\s{2,}", lines[2].strip()) == [
        "worker1", local(NOW)[5:], "repairable", "base: sysctl net.ipv4.ip_forward", "0 -> 1", "repaired, proven",
    ]  # fmt: skip
    assert "\x1b" not in "".join(lines) and "[31m" in lines[3], "what a host says is no markup"


def test_why_a_revision_is_not_that_which_was_asked_for_is_said_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    told = report(revision={"commit": "3f2a91c" + "0" * 33, "ref": "main", "signed": False, "note": "main is unsigned"})
    shown(told, Console(width=400, highlight=False))
    assert "\nmain is unsigned\n" in capsys.readouterr().out
    assert "- main is unsigned\n" in markdown(told) and "main is unsigned" in Elements(html(told)).text


def test_a_narrow_terminal_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    shown(report(), Console(width=70, highlight=False))
    out = capsys.readouterr().out
    assert "…" not in out and "repairable" in out


def test_the_list_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    listed([report(), {**report(), "exit_status": None, "seconds": None, "state": "running"}], Console(width=200))
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["report", "began", "mode", "revision", "took", "result"]
    assert first.startswith("20270115T080000Z-abcd") and "exit 1" in first and second.rstrip().endswith("running")
    listed([], Console())
    assert "No run" in capsys.readouterr().out


def test_status(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    where = site(store.folder, windows=[{"days": ["mon"], "from": "01:00", "to": "05:00", "zone": "UTC"}])
    assert status_of(where, store, NOW, lambda *_: None).exit_status == 2
    assert not store.folder.exists(), "looking makes nothing"
    name = store.begin(NOW, report())
    store.write_json(f"runs/{name}/report.json", {**report(), "id": name})
    with store.locked():
        running = store.begin(NOW + 60, begun("report", "report", NOW + 60))
        found = status_of(where, store, NOW + 61, lambda schedule, now: now + 1)
    lines = "\n".join(status_lines(found))
    assert found.exit_status == 1 and found.oldest == NOW and found.next_run == NOW + 62
    for told in (f"since {local(NOW + 60)} ({running})", "2 items, the oldest since", "max hosts 20%", name):
        assert told in lines
    idle = status_of(site(store.folder, enabled=False), store, NOW + 61, lambda *_: 0.0)
    assert (idle.running, idle.next_run) == (None, None) and "turned off" in "\n".join(status_lines(idle))
