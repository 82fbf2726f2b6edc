#!/usr/bin/env python3
"""Inject drift into a lab by group: a report must find it, and a converge must repair it or hand it over.

    .venv/bin/python tests/bench/drift.py [--shape lab|three|machine] [--only objects,by_hand]
    .venv/bin/python tests/bench/drift.py [--inventory FOLDER --lab trainyard [--builder]]

It writes a row for each kind into docs/reference/drift.md. Most groups need the unchanged lab, one an emulated
machine, and one three control plane hosts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import drift_cluster
import drift_hosts
import inputs
import page
import yaml
from drift_kinds import PROVEN, Kind, strange, told
from drift_lab import Ran, answering, reprovision, standing
from drift_shapes import SHAPES
from drift_state import changed, state
from stand import SITE_LIMIT, Stand, add_options
from timed import BenchError

PAGE = inputs.ROOT / "docs" / "reference" / "drift.md"
HEAD = ["drift", "found as", "class", "what became of it"]
TIMES = ["group", "kinds", "report", "converge", "false items", "changed by the report"]
MEASURE = 110
"""Maximum characters of a cell."""


@dataclass(frozen=True)
class Group:
    """Kinds that are present at the same time.

    :param repaired: whether a converge repairs them; otherwise it changes nothing, and an operator does.
    :param blind: whether a report cannot read everything meanwhile.
    :param shape: the lab that it needs.
    """

    kinds: Sequence[Kind]
    repaired: bool = True
    blind: bool = False
    shape: str = "lab"


GROUPS = {
    "edited": Group(drift_hosts.EDITED),
    "stopped": Group(drift_hosts.STOPPED),
    "objects": Group(drift_cluster.OBJECTS),
    "kubeconfig": Group(drift_cluster.GONE, blind=True),
    "hosts_by_hand": Group(drift_hosts.BY_HAND, repaired=False),
    "cluster_by_hand": Group(drift_cluster.BY_HAND, repaired=False, blind=True),
    "machine": Group(drift_hosts.OF_A_MACHINE, shape="machine"),
    "member": Group(drift_cluster.MEMBER, repaired=False, shape="three"),
}


def problems(group: Group, report: Ran, converge: Ran) -> list[str]:
    """Return the deviations from the expected result, one sentence each."""
    wrong = [
        f"false item: {each}" for each in (*strange(group.kinds, report.items), *strange(group.kinds, converge.items))
    ]
    status = 2 if group.blind else 1
    if report.status != status:
        wrong.append(f"the report ended with {report.status}: {report.report['headline']}")
    wanted = 0 if group.repaired else status
    if converge.status != wanted:
        wrong.append(f"the converge ended with {converge.status}: {converge.report['headline']}")
    for kind in group.kinds:
        wrong += [f"{kind.row}: not found: {each}" for each in kind.missing(report.items)]
        left = [item for item in kind.mine(converge.items) if (item["done"] == PROVEN) is not group.repaired]
        wrong += [f"{kind.row}: {told(item)} is '{item['done']}'" for item in left]
    return list(dict.fromkeys(wrong))


def row(kind: Kind, group: Group, report: Ran, converge: Ran) -> list[str]:
    """Return a kind's row of the page."""
    mine, after = kind.mine(report.items), kind.mine(converge.items)
    became = {item["done"] if group.repaired else f"handed over: {item['reason']}" for item in after}
    return [
        kind.row,
        "; ".join(_short(told(item)) for item in mine) or "not found",
        ", ".join(sorted({str(item["class"]) for item in mine})),
        "; ".join(sorted(became)) or "nothing",
    ]


def _short(text: str) -> str:
    return text if len(text) <= MEASURE else text[: MEASURE - 1] + "…"


def fit(group: Group, stand: Stand) -> Group:
    """Return the group without kinds that this lab does not support."""
    listed = yaml.safe_load((stand.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]["children"]
    has = {name for name, each in listed.items() if (each or {}).get("hosts")}
    return replace(group, kinds=[kind for kind in group.kinds if not kind.needs or kind.needs in has])


def measure(stand: Stand, name: str) -> list[str]:
    """Inject one group, report, converge, and undo what an operator would undo; return the deviations."""
    group = fit(GROUPS[name], stand)
    try:
        for kind in group.kinds:
            kind.inject(stand)
        before = state(stand)
        report = reprovision(stand, "report")
        after = state(stand)
        converge = reprovision(stand, "converge")
        wrong = problems(group, report, converge)
        differs = changed(before, after)
        wrong += [f"the report changed {place}: {lines}" for place, lines in differs.items()]
        if not group.repaired:
            handed = changed(after, state(stand))
            wrong += [f"the converge changed {place}: {lines}" for place, lines in handed.items()]
    finally:
        if not group.repaired:
            undo(stand, group)
    page.write("drift", HEAD, [row(kind, group, report, converge) for kind in group.kinds], PAGE)
    false = len(strange(group.kinds, report.items))
    times = [f"{report.seconds:.0f} s", f"{converge.seconds:.0f} s", str(false), ", ".join(differs) or "nothing"]
    page.write("drift groups", TIMES, [[name, str(len(group.kinds)), *times]], PAGE)
    return [f"{name}: {each}" for each in wrong]


def undo(stand: Stand, group: Group) -> None:
    for kind in group.kinds:
        kind.undo(stand)
    answering(stand)
    if any(kind.settle for kind in group.kinds):
        stand.play("site.yml", limit=SITE_LIMIT)


def untouched(stand: Stand, when: str) -> list[str]:
    """Run a report on a site without drift; return the deviations."""
    before = state(stand)
    report = reprovision(stand, "report")
    differs = changed(before, state(stand))
    named = [when, "0", f"{report.seconds:.0f} s", "", str(len(report.items)), ", ".join(differs) or "nothing"]
    page.write("drift groups", TIMES, [named], PAGE)
    wrong = [f"item: {told(item)}" for item in report.items]
    wrong += [f"changed {place}: {lines}" for place, lines in differs.items()]
    wrong += [report.report["headline"]] if report.status else []
    return [f"{when}: {each}" for each in wrong]


def named(when: str, shape: str) -> str:
    """Return a name for the table, with the lab's shape."""
    return when if shape == "lab" else f"{when} ({shape})"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--shape", default="lab", choices=SHAPES, help="the lab (default: %(default)s)")
    parser.add_argument("--only", help="groups, with commas (default: all that this lab is for)")
    parser.add_argument("--builder", action="store_true", help="make worker2 of the given lab a builder")
    options = parser.parse_args(argv)
    here = [name for name, group in GROUPS.items() if group.shape == options.shape]
    names = options.only.split(",") if options.only else here
    if unknown := set(names) - set(here):
        parser.error(f"no such group: {', '.join(unknown)}; there are {', '.join(here)}")
    wrong: list[str] = []
    try:
        with standing(options) as stand:
            wrong += untouched(stand, named("nothing, before", options.shape))
            for name in names:
                wrong += measure(stand, name)
                print("\n".join(wrong), flush=True)
            # A repair is already proven by such a report, the last one of the converge.
            if not GROUPS[names[-1]].repaired:
                wrong += untouched(stand, named("nothing, after", options.shape))
    except (BenchError, subprocess.SubprocessError) as error:
        wrong.append(str(error))
    print("\n".join(["drift:", *wrong]) if wrong else "drift: all of it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
