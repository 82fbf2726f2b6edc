#!/usr/bin/env python3
"""How much harm a converge does at most: too many hosts that have drifted, and bad revisions, in a lab of five hosts.
Writes a table to docs/benchmarks.md.

    .venv/bin/python tests/bench/harm.py

With three of five hosts drifted nothing may change until somebody has approved the report. A bad revision is a commit
of a checkout of its own; once approved, it may reach the canary alone.
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
    # The limit as it is without a setting.
    {"workloads_trainings": [], "reprovision_max_hosts": "20%"},
)
DRIFT = "sysctl -qw net.ipv4.ip_forward=0; apt-mark unhold kubelet > /dev/null"
CONTAINERD = "roles/containerd/templates/cri.toml.j2"
LEFT, HELD, FAILED = 1, 3, 5
HEAD = ["what", "hosts that drifted", "the converge ended with", "hosts that were changed"]


@dataclass(frozen=True)
class Bad:
    """A revision that somebody should not have pushed.

    :param words: for the table.
    :param old: text of the template; `new` is what the revision has in its place.
    :param said: what the reason of the failure has in it; empty where the hosts refuse the file before it is written.
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
    """Commit everything in a checkout, which becomes a repository with the first one."""
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", what]):
        who = ["-c", "user.name=proof", "-c", "user.email=proof@proof"]
        subprocess.run(["git", *who, *words], cwd=root, check=True, timeout=60)


@contextmanager
def standing() -> Iterator[Stand]:
    """The lab, with a checkout of its own.

    :raises BenchError: it cannot be made.
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
    """A converge that changes nothing, because a limit holds it back or the hosts do; the name of its report."""
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
    """60 % of the hosts: nothing, and with an approval everything."""
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
    """Nothing without an approval, and the canary alone with one; the good revision repairs it."""
    template = stand.root / CONTAINERD
    good = template.read_text(encoding="utf-8")
    if good.count(revision.old) != 1:
        raise BenchError(f"{CONTAINERD} does not have '{revision.old}' once.")
    template.write_text(good.replace(revision.old, revision.new), encoding="utf-8")
    commit(stand.root, revision.words)
    hosts = ["cp1", *WORKERS]
    if not revision.said:
        held(stand, revision.words, hosts, LEFT, f"{len(hosts)} items of drift, {len(hosts)} for a person")
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
