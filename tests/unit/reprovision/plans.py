"""Plans of converges, and hosts that are repaired by them, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trainyard.core.errors import TrainyardError
from trainyard.drift.items import Item
from trainyard.drift.repair_plan import Plan, plan
from trainyard.drift.repairs import Hands, Seen
from trainyard.drift.settings import Settings

HOSTS = ["cp1", *(f"w{number}" for number in range(1, 10))]
VALUES: dict[str, Any] = dict.fromkeys(Settings.__dataclass_fields__)
SETTINGS = Settings(**VALUES | {
    "canary": "", "batch": "25%", "max_hosts": "100%", "max_items": 50, "max_unreachable": "10%", "max_repeats": 3,
})  # fmt: skip


def item(host: str, kind: str = "repairable", subject: str = "sysctl") -> Item:
    return Item(host, "base", "Set it", "kernel_settings", subject, kind=kind)


def made(*items: Item, **named: Any) -> Plan:
    settings = replace(SETTINGS, **named.pop("settings", {}))
    return plan(items, HOSTS, HOSTS[1:], settings, **named)


def drifted(*hosts: str, kind: str = "repairable") -> list[Item]:
    return [item(host, kind) for host in hosts]


class World:
    """Hosts that are repaired, unless they are broken.

    :param fails: what goes wrong: `repair`, `ready`, `drift` or `stays` with a host, `cluster` for its own objects.
    :param stop_after: repairs after which the window has ended; `lost_after` those after which the lease is lost.
    :param begins: a training that has begun since the look, by its host.
    """

    def __init__(
        self,
        items: Sequence[Item],
        fails: dict[str, str],
        stop_after: int = 99,
        lost_after: int = 99,
        begins: str = "",
        **seen: Any,
    ) -> None:
        self.items, self.fails, self.seen, self.calls = list(items), fails, seen, [""] * 0
        self.left, self.kept, self.begins = stop_after, lost_after, begins

    def repair(self, hosts: Sequence[str], own: bool) -> str:
        self.left, self.kept = self.left - 1, self.kept - 1
        self.calls.append(",".join(hosts) or "own")
        if self.fails.get("repair", "-") in (*hosts, "cluster" if own else ""):
            return "the role failed"
        gone = ("cluster", "controller") if own else hosts
        self.items = [each for each in self.items if each.host not in gone or self.fails.get("stays") == each.host]
        return ""

    def look(self, hosts: Sequence[str]) -> Seen:
        self.calls.append(f"look {','.join(hosts) or 'all'}")
        new = [item(host, subject="another") for host in hosts if self.fails.get("drift") == host]
        return Seen([*self.items, *new], **(self.seen if not hosts else {}))

    def hands(self) -> Hands:
        return Hands(
            self.repair,
            self.look,
            lambda host: "it is not Ready" if self.fails.get("ready") == host else "",
            lambda: "the window has ended" if self.left <= 0 else "",
            lambda: "the lease is lost" if self.kept <= 0 else "",
            self.training,
        )

    def training(self) -> list[str]:
        if self.begins == "nobody knows":
            raise TrainyardError("no answer")
        return [self.begins]
