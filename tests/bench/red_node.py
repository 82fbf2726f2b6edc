#!/usr/bin/env python3
"""Let root of one worker of a lab send false data to every program, and check that controller, hosts and reports are
right.

    .venv/bin/python tests/bench/red_node.py [--inventory inventories/lab --lab trainyard]

The worker answers modules with 20 MB, with forged lines, events and facts, and with slow diffs. It uses its kubelet's
credentials, and another server replaces the kubelet. Then each guard is switched off once.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import red
import red_node_attacks as attacks
from drift_lab import Ran, reprovision
from drift_shapes import hosts_of
from drift_state import FILES
from red_memory import Children
from red_node_attacks import ATTACKER
from red_node_guards import without_guards
from red_part import run_part
from stand import SITE_LIMIT, Stand
from timed import BenchError

MORE_MEMORY = 300 * 2**20
"""Maximum additional bytes of the largest process of a run under attack."""
LOOKING = ("flood", "forged", "warned", "failed", "slow")
HERE = Path("/tmp/red-node-was-here")
"""The file that a template of the attacker would create."""
AGES = ("first_seen", "last_seen", "runs", "key")


def of_others(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the report of all hosts but the attacker, as text: the state of each, and each item."""
    found = {f"host {name}": json.dumps(each) for name, each in report["hosts"].items() if name != ATTACKER}
    for item in report["items"]:
        # Delegated work for the attacker, such as for its node, may differ.
        if ATTACKER in (item["host"], item.get("via")) or ATTACKER in str(item["subject"]):
            continue
        lasting = {name: value for name, value in item.items() if name not in AGES}
        found[f"item {item['host']} {item['task']} {item['subject']}"] = json.dumps(lasting, sort_keys=True)
    return found


def written(stand: Stand, run: str) -> list[str]:
    """Return faults of the files that a run has left, and of the output of its programs."""
    files = [path for path in (stand.state / "reprovision").rglob(f"{run}/*") if path.is_file()]
    files.append(stand.folder / f"{run}.txt")
    wrong = [] if len(files) > 1 else [f"the run {run} has left no file"]
    for path in files:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        wrong += [f"{path.name} has {each}" for each in red.amiss(data.decode(errors="replace"))]
    return wrong


def look(stand: Stand) -> tuple[Ran, int]:
    """Run a report; return it with the bytes of its largest process."""
    with Children() as children:
        ran = reprovision(stand, "report")
    return ran, children.most


def judged(before: tuple[Ran, int], after: tuple[Ran, int]) -> list[str]:
    """Return changes of a report by an attack, without those of the attacker's own host."""
    (calm, size), (ran, most) = before, after
    wrong = [f"report: {each}" for each in red.differences(of_others(calm.report), of_others(ran.report))]
    wrong += [] if ran.status in (0, 1, 2) else [f"the report ended with {ran.status}"]
    grown = most - size
    return wrong + ([] if grown <= MORE_MEMORY else [f"a process had {grown >> 20} MiB more"])


def attacked(stand: Stand, mode: str, before: tuple[Ran, int]) -> list[str]:
    """Run a report while the worker answers in a mode."""
    attacks.mode(stand, mode)
    try:
        after = look(stand)
    finally:
        attacks.mode(stand, "honest")
    code, said = stand.answer("reprovision", "show")
    wrong = [f"reprovision show has {each}" for each in red.amiss(said)]
    wrong += [] if code in (0, 1) else [f"reprovision show ended with {code}"]
    return judged(before, after) + written(stand, str(after[0].report["id"])) + wrong


def verified(stand: Stand, wanted: tuple[str, ...]) -> list[str]:
    """Return faults of `trainyard verify`: an unexpected verdict, or its output."""
    verdict, failing = red.verdict(stand)
    said = (stand.folder / "verify.log").read_text(encoding="utf-8")
    wrong = [f"trainyard verify has {each}" for each in red.amiss(said)]
    return wrong + ([] if verdict in wanted else [f"the verdict is {verdict}: {', '.join(failing)}"])


def others(stand: Stand) -> dict[str, str]:
    """Return files, packages and services of all hosts but the attacker."""
    return {host: stand.on_node(host, "sh", "-c", FILES) for host in hosts_of(stand.inventory) if host != ATTACKER}


def requests(stand: Stand) -> list[str]:
    """Misuse the kubelet's credentials."""
    api = attacks.as_node(stand)
    wrong = attacks.refused(api)
    names = attacks.ask(api)
    attacks.label(api, wanted=True)
    try:
        # The approver of certificates runs here, and all readers of labels.
        stand.play("site.yml", limit=SITE_LIMIT)
        for words in (("gpus",), ("gpus", "--json"), ("trainings",)):
            code, said = stand.answer(*words)
            wrong += [f"trainyard {' '.join(words)} has {each}" for each in red.amiss(said)]
            wrong += [] if code in (0, 1, 2) else [f"trainyard {' '.join(words)} ended with {code}"]
    finally:
        attacks.label(api, wanted=False)
        wrong += attacks.approved(stand.api, names)
    return wrong


def kubelet(stand: Stand) -> list[str]:
    """Replace the kubelet by another server, and check that no program trusts it."""
    pods = stand.api.list("v1", "Pod", "kube-system")
    named = [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName") == ATTACKER]
    if not named:
        raise BenchError(f"{ATTACKER} has no pod of the system.")
    with attacks.another_kubelet(stand):
        return attacks.misled(stand, named[0]) + verified(stand, ("fail", "unknown"))


def measure(stand: Stand) -> list[str]:
    """Run all attacks; return the faults."""
    wrong: list[str] = []
    red.tried("verdict before", wrong, lambda: verified(stand, ("pass",)))
    before = look(stand)
    files, hosts, objects = red.controller(stand), others(stand), red.others(stand)
    try:
        attacks.install(stand)
        for mode in LOOKING:
            red.tried(mode, wrong, lambda mode=mode: attacked(stand, mode, before))
        # Compared before a verdict and a converge, which write a receipt into the cluster.
        red.tried("objects", wrong, lambda: red.differences(objects, red.others(stand)))
        red.tried("other hosts", wrong, lambda: red.differences(hosts, others(stand)))
        attacks.mode(stand, "warned")
        red.tried("verify", wrong, lambda: verified(stand, ("pass", "fail", "unknown")))
        attacks.mode(stand, "honest")
        red.tried("kubelet's credential", wrong, lambda: requests(stand))
        red.tried("another kubelet", wrong, lambda: kubelet(stand))
        red.tried("files of the controller", wrong, lambda: red.differences(files, red.controller(stand)))
        red.tried("a template", wrong, lambda: [str(HERE)] if HERE.exists() else [])
        red.tried("without guards", wrong, lambda: without_guards(stand))
    finally:
        attacks.restore(stand)
    red.tried("verdict after", wrong, lambda: verified(stand, ("pass",)))
    red.tried("report after", wrong, lambda: judged(before, look(stand)))
    return wrong


def main(argv: list[str]) -> int:
    return run_part("red_node", __doc__, measure, "nothing was misled", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
