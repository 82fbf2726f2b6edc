#!/usr/bin/env python3
"""Inject faults into a lab in turn; `trainyard why` must name each as the first cause. Writes to docs/benchmarks.md.

    .venv/bin/python tests/bench/why.py [--only too_large,quota] [--keep FOLDER] [--inventory FOLDER --lab trainyard]

Each must be named within 15 s of becoming visible from outside, and is undone. The snapshots are written to a folder,
for the tables of tests/unit/why.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import inputs
import page
from mishaps import until
from stand import Stand, add_options, standing
from timed import BenchError
from why_faults import FAULTS, Fault, description
from why_lab import Scene

from trainyard.kube.api import KubeError
from trainyard.kube.reads import Unread, read
from trainyard.why.judge import judge
from trainyard.why.snapshot import Snapshot, snapshot

NAME_SECONDS = 15.0
"""Maximum time from a fault's visibility to its naming."""
SEE_SECONDS = 240.0
"""Maximum time from the injection to the visibility: a lost node takes almost a minute, an eviction two."""
PROGRAM_SECONDS = 2.0
PAUSE = 0.5
GPUS = {"lab_gpus": 2}
"""GPUs of each worker."""
HEAD = ["fault", "named as", "after", "one look", "aim"]


class Unnamed(BenchError):
    """A fault that is not named, with the snapshot that should have revealed it."""

    def __init__(self, message: str, seen: Snapshot) -> None:
        super().__init__(message)
        self.seen = seen


def find(scene: Scene, what: Fault) -> tuple[Snapshot, float, float]:
    """Take snapshots until the fault is named.

    :return: the snapshot in which it was named, seconds since its visibility, and seconds for that snapshot.
    :raises Unnamed: it is not named in time.
    """
    begin, visible, wrong = time.monotonic(), None, ""
    while True:
        started = time.monotonic()
        seen = read(scene.api, snapshot(scene.run.name, scene.run.namespace, datetime.now(UTC)))
        answer = judge(seen)
        now = time.monotonic()
        if visible is None and what.seen(seen):
            visible = started
        if answer.cause and answer.cause.code in what.codes:
            return seen, now - (visible or started), now - started
        # Print the evidence, too: the next attempt of a restarted run has none of it.
        said = "; ".join(str(each) for each in (answer.cause.evidence if answer.cause else ()))
        named = f"{answer.cause.code} ({said})" if answer.cause else f"nothing ({answer.headline})"
        if named != wrong:
            print(f"why: {scene.run.name}: {now - begin:.1f} s: {named}", flush=True)
            wrong = named
        if visible is not None and now - visible > NAME_SECONDS:
            raise Unnamed(f"{scene.run.name} could be seen for {NAME_SECONDS:.0f} s and was named {named}.", seen)
        if now - begin > SEE_SECONDS:
            raise Unnamed(f"{scene.run.name} cannot be seen after {SEE_SECONDS:.0f} s; it is named {named}.", seen)
        time.sleep(PAUSE)


def of_one_run(seen: Snapshot) -> Snapshot:
    """Return the snapshot without the events of earlier runs, which are most of it."""
    events = seen.parts["events"]
    if isinstance(events, Unread):
        return seen
    mine = [each for each in events if not str(each["involvedObject"].get("name")).startswith("why-")]
    mine += [each for each in events if str(each["involvedObject"].get("name")).startswith(seen.run)]
    return replace(seen, parts={**seen.parts, "events": mine})


def write(path: Path, seen: Snapshot) -> None:
    """Write a snapshot without a time in its file, so that unchanged content gives an equal file."""
    path.write_bytes(gzip.compress(json.dumps(of_one_run(seen).as_json()).encode(), mtime=0))


def inject(scene: Scene, what: Fault, places: Mapping[str, str] = MappingProxyType({})) -> None:
    """Inject a fault.

    :param places: role -> the node for its pods.
    """
    what.before(scene)
    scene.submit(what.around, asleep=what.asleep, places=places, **what.changes)
    if what.after:
        scene.until_it_trains()
        what.after(scene)


def mend(scene: Scene, what: Fault) -> None:
    """Undo the fault, and wait until the lab is restored."""
    what.undo(scene)
    scene.clean()
    until("nodes that are Ready", lambda: all(map(_is_ready, scene.api.list("v1", "Node"))), SEE_SECONDS)


def _is_ready(node: dict[str, object]) -> bool:
    status: dict[str, list[dict[str, str]]] = node.get("status") or {}  # type: ignore[assignment]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or [])


def measure(stand: Stand, names: Sequence[str], keep: Path) -> bool:
    """Inject the faults and write the rows of those that were named; return whether all were."""
    bundle = inputs.artefacts(inputs.CACHE)
    keep.mkdir(parents=True, exist_ok=True)
    passed = True
    for name in names:
        what, scene = FAULTS[name], Scene(stand, description(bundle, name))
        try:
            try:
                inject(scene, what)
                seen, seconds, look = find(scene, what)
            finally:
                mend(scene, what)
            code = judge(seen).cause
            assert code is not None
            write(keep / f"{code.code}-{name}.json.gz", seen)
            row = [
                name.replace("_", " "),
                f"`{code.code}`",
                f"{seconds:.1f} s",
                f"{look:.2f} s",
                f"{NAME_SECONDS:.0f} s",
            ]
            page.write("why", HEAD, [row])
        except (BenchError, KubeError, subprocess.SubprocessError) as error:
            if isinstance(error, Unnamed):
                write(keep / f"unnamed-{name}.json.gz", error.seen)
            passed = False
            print(f"why: {name} failed: {error}", file=sys.stderr, flush=True)
    return passed


def program(stand: Stand) -> bool:
    """Run the program itself on the run that the site ends with; return whether it answers in time."""
    seconds, said = stand.program("why", "mnist-ps")
    words = "none: the program, from its start to its end"
    page.write("why", HEAD, [[words, said.splitlines()[0], "", f"{seconds:.2f} s", f"{PROGRAM_SECONDS:.0f} s"]])
    return seconds <= PROGRAM_SECONDS


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--only", default=",".join(FAULTS), help="faults, with commas (default: all)")
    parser.add_argument("--keep", type=Path, default=Path("/var/tmp/trainyard-why"), help="folder for the snapshots")
    options = parser.parse_args(argv)
    names = options.only.split(",")
    if strange := set(names) - set(FAULTS):
        parser.error(f"no such fault: {', '.join(strange)}; there are {', '.join(FAULTS)}")
    try:
        with standing(options, GPUS) as stand:
            swift = program(stand)
            return 0 if measure(stand, names, options.keep) and swift else 1
    except BenchError as error:
        print(f"why: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
