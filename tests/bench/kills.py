#!/usr/bin/env python3
"""Inject machine faults into a converge, and check that the next run ends normally. Writes a table to
docs/benchmarks.md.

    .venv/bin/python tests/bench/kills.py [--only kill_0,disk] [--seed 7]

The worker drifts before each fault. Afterwards no lock may be left, every document on the disk must be readable, and a
secret of the site must be nowhere. All faults take more than 40 minutes, so they are three parts of `make proof`.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import page
import secret
from hindrances import drift
from kill_kinds import MISHAPS, Mishap
from schedule_site import CONTROLLER, FOLDER, WORKER
from schedule_stand import UNIT, Ended, Scheduled, scheduled
from timed import BenchError

from trainyard.kube.api import KubeError

DRIFTS = 5
"""Number of items of `hindrances.drift`."""
LOOK_SECONDS = 2.0
LEFT_BEHIND = (
    *(f"{FOLDER}/{name}" for name in ("site", "home", "worktrees")),
    *("/tmp", "/var/tmp", "/dev/shm", "/run/trainyard-reprovision", "/etc/trainyard/reprovision", "/root/.ansible"),
)
BELONGS = ("etc/trainyard/reprovision/credentials",)
HEAD = ["what happened", "when", "the run ended with", "the next one ended with", "after"]


def amiss(ended: Ended, found: Mapping[str, Any], held: bool) -> list[str]:
    """Return the deviations after the next run; empty if there are none.

    :param found: result of `schedule_probe.look`.
    :param held: whether the lease is held.
    """
    told = [] if ended.status == 0 else [f"it ended with {ended.status}: {ended.said[-1500:]}"]
    told += [f"{name}: {each}" for name in ("left", "broken", "processes") for each in found[name]]
    reports = found["reports"]
    told += ["a report cannot be read"] if None in reports else []
    known = [each for each in reports if each]
    told += [f"{each['id']} was never closed" for each in known if each["state"] == "running"]
    last = max(known, key=lambda each: str(each["id"]), default=None)
    if last is None:
        return [*told, "there is no report"]
    told += [] if last["verdict"] == "pass" else [f"its verdict is {last['verdict']}"]
    told += [f"{item['subject']}: {item['done']}" for item in last["items"] if item["done"] != "repaired, proven"]
    return told + (["the lease is still there"] if held else [])


def held(stand: Scheduled) -> bool:
    return stand.api.get("coordination.k8s.io/v1", "Lease", "trainyard-run", "kube-system") is not None


def keys(stand: Scheduled) -> list[str]:
    """Return the texts that must be nowhere: the site's secret, and the lines of the key for its hosts."""
    return [stand.canary, *secret.key_lines((stand.state / "ssh" / "id_ed25519").read_text(encoding="utf-8"))]


def one(stand: Scheduled, what: Mishap, length: float) -> list[str]:
    """Inject one fault, run a converge afterwards, and return the row of the table.

    :param length: duration of an undisturbed converge, in seconds.
    :raises BenchError: there are deviations.
    """
    what.before(stand)
    drift(stand)
    moment, started = random.uniform(*what.share) * length, time.monotonic()
    stand.begin(UNIT)
    while (left := moment - (time.monotonic() - started)) > 0:
        for node in (CONTROLLER, WORKER):
            secret.require_nowhere(secret.of_processes(stand, node), keys(stand))
        time.sleep(min(LOOK_SECONDS, max(left, 0)))
    at = time.monotonic() - started
    disturbed = what.do(stand)
    what.after(stand)
    if disturbed and what.statuses and disturbed.status not in what.statuses:
        raise BenchError(f"The disturbed run ended with {disturbed.status}: {disturbed.said[-1500:]}")
    following = stand.run()
    if told := amiss(following, stand.look(), held(stand)):
        raise BenchError(f"After it: {'; '.join(told)}")
    what.end(stand)
    ended = str(disturbed.status) if disturbed else "its power"
    when = f"after {at:.0f} s of {length:.0f} s" if what.share[1] > 0.01 else "see there"
    return [what.words, when, ended, str(following.status), f"{following.seconds:.0f} s"]


def nowhere(stand: Scheduled) -> int:
    """Search for the secrets in all files left by the runs; return the number of searched files."""
    wanted = keys(stand)
    files = secret.of_node(stand, CONTROLLER, LEFT_BEHIND, BELONGS)
    for node in (WORKER, "cp1"):
        files += secret.of_node(stand, node, ("/tmp", "/var/tmp", "/dev/shm", "/root/.ansible"))
    # Check that it could be found: the hosts have it, and a hook has printed it.
    if not secret.search([("hosts", stand.bytes_of(WORKER, "cat", "/etc/hosts"))], wanted):
        raise BenchError("No host has the secret, so nothing was tested.")
    notes = [note for each in stand.look()["reports"] if each for note in each["notes"]]
    if not any("the hook telltale failed" in note and "********" in note for note in notes):
        raise BenchError("No error message had the secret, so nothing was tested.")
    return secret.require_nowhere(files, wanted)


def measure(stand: Scheduled, names: Sequence[str]) -> bool:
    """Inject the faults and write the rows of those that passed; return whether all did."""
    drift(stand)
    undisturbed = stand.run()
    found = stand.look()
    repaired = len(max(filter(None, found["reports"]), key=lambda each: str(each["id"]))["items"])
    if told := amiss(undisturbed, found, held(stand)):
        raise BenchError(f"An undisturbed converge: {'; '.join(told)}")
    if repaired < DRIFTS:
        raise BenchError(f"An undisturbed converge has repaired {repaired} items, and {DRIFTS} were broken.")
    print(f"kills: an undisturbed converge takes {undisturbed.seconds:.0f} s", flush=True)
    passed = True
    for name in names:
        try:
            page.write("kills", HEAD, [one(stand, MISHAPS[name], undisturbed.seconds)])
        except (BenchError, KubeError, subprocess.SubprocessError) as error:
            passed = False
            print(f"kills: {name} failed: {error}", file=sys.stderr, flush=True)
            # Clean up for the other faults: a run that is still active holds the site.
            for mend in (Scheduled.wait, MISHAPS[name].after, MISHAPS[name].end):
                with suppress(BenchError, KubeError, subprocess.SubprocessError):
                    mend(stand)
    count = nowhere(stand)
    page.write("kills", HEAD, [[f"secrets, looked for after {', '.join(names)}", "", "", "", f"0 in {count} files"]])
    return passed


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(MISHAPS), help="mishaps, with commas (default: all)")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="of the moments (default: another each time)"
    )
    options = parser.parse_args(argv)
    names = options.only.split(",")
    if strange := set(names) - set(MISHAPS):
        parser.error(f"no such mishap: {', '.join(strange)}; there are {', '.join(MISHAPS)}")
    random.seed(options.seed)
    print(f"kills: --seed {options.seed}", flush=True)
    try:
        with scheduled() as stand:
            return 0 if measure(stand, names) else 1
    except (BenchError, KubeError, subprocess.SubprocessError) as error:
        print(f"kills: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
