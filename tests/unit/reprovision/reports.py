"""A report in which a host says what no page should do."""

from __future__ import annotations

from typing import Any

from tests.unit.reprovision.sites import NOW
from trainyard.drift.find import Consequence, Found
from trainyard.drift.items import Item
from trainyard.drift.report import begun, finished

HOSTILE = '<script>alert(1)</script>|`[x](javascript:y)` "&\x1b[31m\u202e\n\r end'
ITEMS = [
    Item("worker1", "base", "Set", "kernel_settings", "sysctl net.ipv4.ip_forward", "0", "1", "repairable",
         first_seen=NOW, done="repaired, proven"),
    Item("worker2", "kubernetes", "Install", "apt_packages", HOSTILE, HOSTILE, HOSTILE, "person", HOSTILE,
         first_seen=NOW),
]  # fmt: skip


def report(**more: Any) -> dict[str, Any]:
    found = Found(items=ITEMS, seen=["worker1", "worker2"], ended=True, verdict="pass", problems=[HOSTILE])
    found.consequences = [Consequence("worker1", "base", "Set", HOSTILE)]
    revision = {"commit": "3f2a91c" + "0" * 33, "ref": "main", "signed": True, "note": HOSTILE}
    done = finished(begun("converge", "converge", NOW, revision), found, ITEMS, ["worker1", "worker2"], NOW + 41)
    return {**done, "id": "20270115T080000Z-abcd", "limits": [HOSTILE], **more}
