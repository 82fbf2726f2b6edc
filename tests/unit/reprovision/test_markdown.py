"""Reports as Markdown and tables: hostile text from hosts is shown as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.reprovision.reports import report
from tests.unit.reprovision.sites import NOW, site
from trainyard.cli.reports import listed, local, shown, status_lines
from trainyard.drift.markdown import markdown
from trainyard.drift.report import begun
from trainyard.drift.report_store import Store
from trainyard.schedule.status import status_of


def test_the_report_has_all_facts() -> None:
    text = markdown(report())
    for fact in (
        "2027-01-15 08:00 UTC converge", "exit 1: 2 items of drift, 1 for an operator", r"3f2a91c \(signed\)", "41 s",
        r"base: sysctl net.ipv4.ip\_forward", "repaired, proven", "verdict pass", "worker1",
    ):  # fmt: skip
        assert fact in text


@pytest.mark.parametrize("state", ["running", "interrupted"])
def test_a_run_without_an_end_has_a_report(state: str) -> None:
    text = markdown({**begun("report", "report", NOW), "id": "x", "state": state})
    assert state in text and "Nothing differs." in text


def test_markdown_shows_hostile_text_as_text() -> None:
    text = markdown(report())
    assert "<script" not in text and not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e]", text)
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
    assert "- main is unsigned\n" in markdown(told)


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
