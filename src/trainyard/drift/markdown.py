"""A report as Markdown, and the texts that it shares with the terminal.

Text from hosts may be hostile, so it is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from .find import REFUSAL
from .subjects import bare_subject, hidden_subject

Report = Mapping[str, Any]

COLUMNS = ("host", "since", "class", "what", "before", "after", "done")
CLASSES_OF_STATUS = {0: "good", 1: "look", 3: "look", 4: "look"}
"""Exit status -> mark in a table; any other status is bad."""


def moment(seconds: float | None) -> str:
    """Return `2027-03-04 03:10 UTC`, or a dash. UTC, because a report may be read in any time zone."""
    return "-" if not seconds else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def revision(report: Report) -> str:
    """Return the commit and its signature, such as `3f2a91c (signed)`."""
    found = report.get("revision") or {}
    signed = " (signed)" if found.get("signed") else " (not signed)" if found.get("signed") is False else ""
    return f"{str(found.get('commit') or '-')[:7]}{signed}"


def status_line(report: Report) -> str:
    """Return `exit 1: 2 items of drift`, or the state of a run without an exit status."""
    if report["exit_status"] is None:
        return str(report["state"])
    return f"exit {report['exit_status']}: {report['headline']}"


def what(item: Report) -> str:
    """Return `base: sysctl net.ipv4.ip_forward`. A subject that names nothing is followed by the name of its task."""
    subject = str(item["subject"])
    if subject in (REFUSAL, hidden_subject(item["module"]), bare_subject(item["module"])):
        subject += f" ({item['task'].rpartition('| ')[2]})"
    return f"{item['role']}: {subject}" if item["role"] else subject


def cells(item: Report) -> tuple[str, ...]:
    """Return the columns of an item. An item that is left to an operator shows the reason."""
    done = str(item["done"] or item["reason"])
    return (
        str(item["host"]), moment(item["first_seen"]), str(item["class"]), what(item), str(item["before"]),
        str(item["after"]), done,
    )  # fmt: skip


def markdown(report: Report) -> str:
    """Return the report as Markdown, for a ticket or the summary of a CI job."""
    lines = [
        f"# Reprovisioning: {moment(report['began'])} {report['mode']}",
        "",
        f"**{_m(status_line(report))}**",
        "",
        f"revision {_m(revision(report))} · {_m(_seconds(report))} · verdict {_m(report['verdict'] or 'not asked')}",
        "",
        *_rows(COLUMNS, [cells(each) for each in report["items"]], "Nothing differs."),
        *_rows(("host", "state", "items"), [
            (name, host["state"], str(host["items"])) for name, host in report["hosts"].items()
        ], "No host was checked."),
    ]  # fmt: skip
    for title, listed in (
        ("Consequences", [f"{each['host']}: {each['what']}" for each in report["consequences"]]),
        ("Limits", report["limits"]),
        ("Notes", [each for each in ((report.get("revision") or {}).get("note"), *report["notes"]) if each]),
    ):
        if listed:
            lines += [f"## {title}", "", *(f"- {_m(each)}" for each in listed), ""]
    return "\n".join(lines).rstrip() + "\n"


def _seconds(report: Report) -> str:
    return "" if report["seconds"] is None else f"{report['seconds']:.0f} s"


def _rows(names: Sequence[str], rows: Sequence[Sequence[str]], none: str) -> list[str]:
    if not rows:
        return [none, ""]
    head = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    return [*head, *(f"| {' | '.join(_m(text) for text in row)} |" for row in rows), ""]


def plain(text: Any) -> str:
    """Return the text as one printable line, without control characters and changes of the writing direction."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(str(text).split()))


def _m(text: Any) -> str:
    """Escape text so that Markdown shows it literally, also inside a table."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~-])", r"\\\1", escape(plain(text), quote=False))
