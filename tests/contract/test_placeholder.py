"""Tests of the host that cannot fail: each play of site.yml that could end the run has it, and does nothing on it."""

from __future__ import annotations

import re
from typing import Any

from test_locks import plays

SITE = re.compile(r"\b(cluster|mirror|builders|gpu_nodes|control_plane|workers|probing)\b")
CANNOT_END = {
    "Find hosts that dropped out",
    "Probe DNS and a Service from every cluster node",
    "Query the GPU drivers",
    "Check the limit",
}
"""Plays that fail on no host and report hosts that were not reached, or that are meant to end the run."""

FIRST = "tasks/skip_placeholder.yml"


def of_hosts() -> list[dict[str, Any]]:
    found = [play for play in plays("site.yml") if SITE.search(str(play.get("hosts", "")))]
    return [play for play in found if play["name"] not in CANNOT_END]


def test_every_play_of_hosts_has_it_and_lets_it_go_first() -> None:
    assert len(of_hosts()) > 8
    for play in of_hosts():
        assert "placeholder" in play["hosts"], play["name"]
        first = [*play.get("pre_tasks", []), *play.get("tasks", [])][0]
        assert first["ansible.builtin.import_tasks"] == FIRST, play["name"]
        # Facts are gathered before any task, and this host has none.
        assert play["gather_facts"] is False, play["name"]


def test_no_other_play_has_it() -> None:
    others = [play for play in plays("site.yml") if play not in of_hosts()]
    assert not [play["name"] for play in others if "placeholder" in str(play.get("hosts", ""))]
