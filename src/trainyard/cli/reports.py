"""Reports as text for `trainyard reprovision`. Times are local, like those of the machine's timers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from ..drift.markdown import CLASSES_OF_STATUS, plain, revision, status_line, what
from ..schedule.status import Status
from .terminal import Rows, show_line

Report = Mapping[str, Any]

COLOURS = {"good": "green", "look": "yellow", "bad": "red"}
OF_CLASS = {"repairable": "green", "restart": "yellow", "control_plane": "red", "person": "red", "foreign": "magenta"}


def local(seconds: float | None) -> str:
    """Return `2027-03-04 03:10` in local time, or a dash."""
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}" if seconds else "-"


def head(report: Report) -> Text:
    """Return `2027-03-04 03:10  converge  revision 3f2a91c (signed)   41 s   exit 1: 2 items of drift`."""
    took = "" if report["seconds"] is None else f"{report['seconds']:.0f} s   "
    text = Text(f"{local(report['began'])}  {plain(report['mode'])}  revision {plain(revision(report))}   {took}")
    text.append(plain(status_line(report)), COLOURS[CLASSES_OF_STATUS.get(report["exit_status"], "bad")])
    return text


def shown(report: Report, console: Console) -> None:
    """Print a report: its head, items, consequences, limits and notes."""
    show_line(console, head(report))
    rows = Rows(("host", "since", "class", "what", "before -> after", "done"), whole=("host", "since", "class"))
    for item in report["items"]:
        there = f"{item['before'] or '-'} -> {item['after'] or '-'}" if item["before"] or item["after"] else "-"
        kind = str(item["class"])
        rows.add(
            plain(item["host"]),
            local(item["first_seen"])[5:] or "-",
            (kind, OF_CLASS.get(kind, "")),
            plain(what(item)),
            plain(there),
            plain(item["done"] or item["reason"] or "-"),
        )
    if report["items"]:
        rows.show(console, "")
    for each in report["consequences"]:
        show_line(console, f"follows: {plain(each['host'])}, {plain(each['what'])}")
    note = (report.get("revision") or {}).get("note")
    for each in (*([note] if note else []), *report["limits"], *report["notes"]):
        show_line(console, plain(each))


def listed(reports: Iterable[Report], console: Console) -> None:
    """Print one row for each run."""
    rows = Rows(("report", "began", "mode", "revision", "took", "result"), whole=("report",))
    for report in reports:
        rows.add(
            plain(report["id"]),
            local(report["began"]),
            plain(report["mode"]),
            plain(revision(report)),
            "-" if report["seconds"] is None else f"{report['seconds']:.0f} s",
            (plain(status_line(report)), COLOURS[CLASSES_OF_STATUS.get(report["exit_status"], "bad")]),
        )
    rows.show(console, "No run has been made yet.")


def status_lines(status: Status) -> list[str]:
    """Return the lines of a status."""
    last, running = status.last, status.running
    lines = [f"last run   {_told(last)}" if last else "last run   none yet"]
    due = f"{local(status.next_run)}  {status.mode}" if status.next_run else plain(status.next_note or "never")
    lines.append(f"next run   {due}")
    if running:
        lines.append(f"running    {running['mode']} since {local(running['began'])} ({running['id']})")
    elif status.holder:
        lines.append(f"running    {plain(status.holder)}")
    elif status.busy:
        lines.append("running    another program holds the state directory")
    else:
        lines.append("running    none")
    items = (last or {}).get("items") or []
    since = f", the oldest since {local(status.oldest)}" if status.oldest else ""
    lines.append(f"drift      {len(items)} {'item' if len(items) == 1 else 'items'}{since}")
    limits = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in status.limits.items() if value)
    lines.append(f"limits     {plain(limits)}")
    found = (last or {}).get("revision") or {}
    lines.append(f"revision   {plain(revision(last or {}))}{' ' + plain(found['note']) if found.get('note') else ''}")
    return lines


def _told(report: Report) -> str:
    return f"{local(report['began'])}  {plain(report['mode'])}  {plain(status_line(report))}  ({plain(report['id'])})"
