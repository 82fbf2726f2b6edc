"""A site for tests of runs: its settings, and a playbook that says what a recorded stream says."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from trainyard.core.waiter import Clock
from trainyard.drift.masking import Masker
from trainyard.drift.playbook_runner import Event, Played, Reader
from trainyard.drift.settings import Site, settings_of
from trainyard.site.inventory import ROLES

STREAMS = Path(__file__).resolve().parent / "streams"
NOW = 1_800_000_000.0


class Stopped(Clock):
    """A clock that goes on when it is told to."""

    now = NOW

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def site(state_dir: Path, secrets: frozenset[str] = frozenset(), **settings: Any) -> Site:
    """A site of three workers with the role's defaults."""
    values = yaml.safe_load((ROLES / "reprovision" / "defaults" / "main.yml").read_text(encoding="utf-8"))
    values |= {"reprovision_state_dir": str(state_dir)}
    values |= {f"reprovision_{name}": value for name, value in settings.items()}
    workers = ("worker1", "worker2", "worker3")
    kubeconfig = state_dir.parent / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    return Site(
        ("hosts.yml",), settings_of(values), workers, workers, str(kubeconfig), secrets, str(state_dir.parent / "mine"),
        {name: name for name in workers}, ("kube-system",),
        "registry.k8s.io/pause:3",
    )  # fmt: skip


def recorded(name: str) -> list[Event]:
    """The reduced events of a stream."""
    reader = Reader()
    lines = (STREAMS / f"play_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [found for line in lines if (found := reader.read(json.loads(line)))]


def ended(*hosts: str) -> list[Event]:
    """The end of a run that looked at hosts: the verdict, and the counts."""
    counts = dict.fromkeys(hosts, 1)
    empty: dict[str, int] = {}
    verdict = {
        "event": "runner_on_ok", "host": "localhost", "role": "verify", "task": "Judge the site", "changed": True,
        "module": "verify_site", "hidden": False, "ignored": False, "looped": False, "delegated": "",
        "result": {"verdict": "pass", "problems": []},
    }  # fmt: skip
    stats = {"event": "playbook_on_stats", "processed": counts, "ok": counts, "changed": empty, "dark": empty,
             "failures": empty, "rescued": empty}  # fmt: skip
    return [verdict, stats]


class Playbook:
    """In place of ansible-runner: plays what it is given, in turn, and remembers how it was called.

    :param turns: events of each run, or an error that starting it raises.
    """

    def __init__(self, *turns: list[Event] | Exception, stopped: str = "") -> None:
        self.turns, self.stopped = list(turns), stopped
        self.calls: list[dict[str, Any]] = []

    def __call__(self, playbook: str, *, masker: Masker, **options: Any) -> Played:
        self.calls.append({"playbook": playbook, **options})
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        events = [masker.data(each) for each in turn]
        return Played(events, 0, self.stopped, {"events.jsonl.gz": gzip.compress(json.dumps(events).encode())})


def shape(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Host, class and subject of each item."""
    return [(each["host"], each["class"], each["subject"]) for each in found["items"]]
