#!/usr/bin/env python3
"""Measure the maximum harm of a converge: too many drifted hosts, and bad revisions. Writes a table to
docs/benchmarks.md.

    .venv/bin/python tests/bench/harm.py

In a lab of five hosts, three drifted ones must stay unchanged until an operator approves the report. A bad revision is
a commit in a separate checkout; once approved, it may reach only the canary.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import page
from drift_kinds import PROVEN
from drift_lab import Lab, Ran, on, reprovision
from drift_shapes import Shape, shape
from drift_state import changed, state
from schedule_site import check_out
from sides import LAB, SUBNET, Site
from stand import SITE_LIMIT, Stand
from timed import BenchError

WORKERS = {f"worker{number}": {"ansible_host": f"{SUBNET}{20 + number}"} for number in (1, 2, 3)}
CANARY = "worker1"
SHAPE = Shape(
    {"workers": WORKERS},
    # The default limit.
    {"workloads_trainings": [], "reprovision_max_hosts": "20%"},
)
DRIFT = "sysctl -qw net.ipv4.ip_forward=0; apt-mark unhold kubelet > /dev/null"
CONTAINERD = "roles/containerd/templates/cri.toml.j2"
LEFT, HELD, FAILED = 1, 3, 5
HEAD = ["what", "hosts that drifted", "the converge ended with", "hosts that were changed"]


@dataclass(frozen=True)
class Bad:
    """A revision that should not have been pushed.

    :param words: text for the table.
    :param old: text of the template; the revision replaces it with `new`.
    :param said: part of the reason of the failure; empty if the hosts refuse the file before it is written.
    """

    words: str
    old: str
    new: str
    said: str


BAD = [
    Bad("a revision whose file containerd cannot read", "enable_cdi = true", 'enable_cdi = "perhaps"', ""),
    Bad(
        "a revision with which containerd runs no container",
        'default_runtime_name = "runc"', 'default_runtime_name = "rnuc"',
        f"no new pod starts on {CANARY}",
    ),
    Bad(
        "a revision whose file differs with each run", "version = 3",
        "# {{ now().isoformat() }}\nversion = 3", "still differs",
    ),
]  # fmt: skip


def commit(root: Path, what: str) -> None:
    """Commit everything in a checkout; the first commit creates the repository."""
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", what]):
        who = ["-c", "user.name=proof", "-c", "user.email=proof@proof"]
        subprocess.run(["git", *who, *words], cwd=root, check=True, timeout=60)


@contextmanager
def standing() -> Iterator[Stand]:
    """Provide the lab with a separate checkout.

    :raises BenchError: it cannot be created.
    """
    folder = Path(tempfile.mkdtemp(prefix="trainyard-harm-", dir="/var/tmp"))
    print(f"logs are in {folder}", flush=True)
    root = folder / "checkout"
    check_out(root)
    commit(root, "good")
    site = Site(folder, root)
    try:
        site.prepare()
        shape(site.inventory, SHAPE)
        site.down()
        stand = Lab(site.inventory, LAB, folder, root=root)
        stand.play("site.yml", limit=SITE_LIMIT)
        yield stand
    finally:
        site.down()


def held(stand: Stand, what: str, drifted: Sequence[str], status: int = HELD, said: str = "") -> str:
    """Run a converge that changes nothing, because of a limit or of the hosts; return the name of its report."""
    before = state(stand)
    ran = reprovision(stand, "converge")
    differs = changed(before, state(stand))
    expect(ran, status, said or f"{len(drifted)} of 5 hosts have drifted")
    if differs:
        raise BenchError(f"{what}: it was held back, and has changed {differs}")
    row(what, drifted, ran, [])
    return str(ran.report["id"])


def expect(ran: Ran, status: int, said: str) -> None:
    headline = ran.report["headline"]
    if ran.status != status or said not in headline:
        raise BenchError(f"The converge ended with {ran.status}, and not with {status} for '{said}': {headline}")


def row(what: str, drifted: Sequence[str], ran: Ran, changed_hosts: Sequence[str]) -> None:
    named = ", ".join(changed_hosts)
    page.write("harm", HEAD, [[what, f"{len(drifted)} of 5", str(ran.status), named or "none"]])


def approve(stand: Stand, report: str) -> None:
    stand.program("reprovision", "approve", report)


def too_many(stand: Stand) -> None:
    """Let 60 % of the hosts drift: nothing changes, and everything after an approval."""
    for host in WORKERS:
        on(host, DRIFT)(stand)
    what = "the same things broken by hand on three workers"
    report = held(stand, what, list(WORKERS))
    approve(stand, report)
    ran = reprovision(stand, "converge")
    left = [f"{item['host']} {item['subject']}: {item['done']}" for item in ran.items if item["done"] != PROVEN]
    if ran.status or left:
        raise BenchError(f"The approved converge ended with {ran.status}: {left} {ran.report['headline']}")
    row(f"{what}, approved", list(WORKERS), ran, sorted({item["host"] for item in ran.items}))


def bad(stand: Stand, revision: Bad) -> None:
    """Apply a bad revision: nothing changes without approval, only the canary with one; the good one repairs it."""
    template = stand.root / CONTAINERD
    good = template.read_text(encoding="utf-8")
    if good.count(revision.old) != 1:
        raise BenchError(f"{CONTAINERD} does not have '{revision.old}' once.")
    template.write_text(good.replace(revision.old, revision.new), encoding="utf-8")
    commit(stand.root, revision.words)
    hosts = ["cp1", *WORKERS]
    if not revision.said:
        held(stand, revision.words, hosts, LEFT, f"{len(hosts)} items of drift, {len(hosts)} for an operator")
        template.write_text(good, encoding="utf-8")
        commit(stand.root, "good again")
        return
    approve(stand, held(stand, revision.words, hosts))
    before = state(stand)
    ran = reprovision(stand, "converge")
    differs = changed(before, state(stand))
    expect(ran, FAILED, revision.said)
    if set(differs) - {CANARY}:
        raise BenchError(f"{revision.words}: it went beyond the canary: {differs}")
    row(f"{revision.words}, approved", hosts, ran, sorted(differs))
    template.write_text(good, encoding="utf-8")
    commit(stand.root, "good again")
    ran = reprovision(stand, "converge")
    touched = {item["host"] for item in ran.items}
    if ran.status or touched != {CANARY}:
        raise BenchError(f"The good revision ended with {ran.status} on {sorted(touched)}: {ran.report['headline']}")
    row(f"{revision.words}, taken back", [CANARY], ran, [CANARY])


def main() -> int:
    try:
        with standing() as stand:
            too_many(stand)
            for revision in BAD:
                bad(stand, revision)
    except (BenchError, subprocess.SubprocessError) as error:
        print(f"harm: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
