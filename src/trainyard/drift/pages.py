"""Pages of a report in HTML and Markdown, and the list of the last runs. They load nothing from outside.

Text from hosts may be hostile, so it is escaped in both formats. Neither format contains a script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from .find import REFUSAL
from .subjects import bare_subject, hidden_subject

Report = Mapping[str, Any]

COLUMNS = ("host", "since", "class", "what", "before", "after", "done")
LISTED = 60
"""Runs in the list."""

CLASSES_OF_STATUS = {0: "good", 1: "look", 3: "look", 4: "look"}
"""Exit status -> mark on the page; any other status is bad."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; --line: #8886; --good: #1a7f37; --look: #9a6700; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --look: #d29922; --bad: #f85149; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 76rem; padding: 1rem; }
body { overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 1.8rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
th, td:is([data-name=host], [data-name=since], [data-name=class], [data-name=state]) { overflow-wrap: break-word; }
td { font-variant-numeric: tabular-nums; } small { opacity: .75; }
.good { color: var(--good); } .look { color: var(--look); } .bad { color: var(--bad); }
@media (max-width: 44rem) {
  table, tbody, tr, td { display: block; } thead { display: none; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; } td { border: 0; padding: .1rem 0; }
  td::before { content: attr(data-name) ": "; opacity: .75; } td:empty { display: none; }
}
""".strip()


def moment(seconds: float | None) -> str:
    """Return `2027-03-04 03:10 UTC`, or a dash. UTC, because a page may be read in any time zone."""
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


def html(report: Report) -> str:
    """Return the whole report as one page of HTML."""
    title = f"{moment(report['began'])} {report['mode']}"
    mark = CLASSES_OF_STATUS.get(report["exit_status"], "bad")
    facts = [f"revision {revision(report)}", _seconds(report), f"verdict {report['verdict'] or 'not asked'}"]
    note = (report.get("revision") or {}).get("note")
    parts = [
        f"<h1>Reprovisioning: {_e(title)}</h1>",
        f'<p class="{mark}"><strong>{_e(status_line(report))}</strong></p>',
        f"<p>{_e(' · '.join(filter(None, [*facts, note])))}</p>",
        *_section("Items", COLUMNS, [cells(each) for each in report["items"]], "Nothing differs."),
        *_section("Hosts", ("host", "state", "items"), [
            (name, host["state"], str(host["items"])) for name, host in report["hosts"].items()
        ], "No host was checked."),
        *_section("Consequences", ("host", "role", "what"), [
            (each["host"], each["role"], each["what"]) for each in report["consequences"]
        ]),
        *_list("Limits", report["limits"]),
        *_list("Notes", report["notes"]),
        '<p><a href="../../index.html">All runs</a></p>',
    ]  # fmt: skip
    return _page(title, parts)


def index(reports: Iterable[Report]) -> str:
    """Return the page that lists the last runs, the newest first."""
    rows = []
    for report in list(reports)[:LISTED]:
        name, mark = _e(report["id"]), CLASSES_OF_STATUS.get(report["exit_status"], "bad")
        rows.append(
            f'<tr><td data-name="began"><a href="runs/{name}/report.html">{_e(moment(report["began"]))}</a></td>'
            f'<td data-name="mode">{_e(report["mode"])}</td><td data-name="revision">{_e(revision(report))}</td>'
            f'<td data-name="seconds">{_e(_seconds(report))}</td>'
            f'<td data-name="result" class="{mark}">{_e(status_line(report))}</td></tr>'
        )
    head = "".join(f"<th>{name}</th>" for name in ("began", "mode", "revision", "took", "result"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return _page("Runs", ["<h1>Reprovisioning: the last runs</h1>", table if rows else "<p>No run yet.</p>"])


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


def _section(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], none: str = "") -> list[str]:
    if not rows:
        return [f"<h2>{title}</h2>", f"<p>{none}</p>"] if none else []
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(
        "<tr>"
        + "".join(f'<td data-name="{name}">{_e(text)}</td>' for name, text in zip(names, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return [f"<h2>{title}</h2>", f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"]


def _list(title: str, texts: Sequence[str]) -> list[str]:
    return [f"<h2>{title}</h2>", f"<ul>{''.join(f'<li>{_e(text)}</li>' for text in texts)}</ul>"] if texts else []


def _page(title: str, parts: Iterable[str]) -> str:
    return "\n".join([
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_e(title)}</title>", f"<style>{STYLE}</style></head><body>", *parts, "</body></html>", "",
    ])  # fmt: skip


def _rows(names: Sequence[str], rows: Sequence[Sequence[str]], none: str) -> list[str]:
    if not rows:
        return [none, ""]
    head = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    return [*head, *(f"| {' | '.join(_m(text) for text in row)} |" for row in rows), ""]


def plain(text: Any) -> str:
    """Return the text as one printable line, without control characters and changes of the writing direction."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(str(text).split()))


def _e(text: Any) -> str:
    return escape(plain(text))


def _m(text: Any) -> str:
    """Escape text so that Markdown shows it literally, also inside a table."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~-])", r"\\\1", escape(plain(text), quote=False))
