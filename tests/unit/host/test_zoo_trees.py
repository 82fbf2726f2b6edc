"""Hosts of the zoo that are only trees of files: a processor or a distribution that no lab has."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.unit.host.test_facts import NEEDS, make_root
from tests.zoo.rows import Row, rows
from trainyard.host import facts
from trainyard.host.remains import other_distributions

GOOD = {"proc/cpuinfo": "flags: avx", "run/systemd/system/.keep": "", "sys/fs/cgroup/cgroup.controllers": ""}
TREES = [row for row in rows() if row.kind == "tree"]


@pytest.mark.parametrize("row", TREES, ids=lambda row: row.name)
def test_a_tree_is_refused_for_its_reason(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*seen[:4], row.machine)))
    root = make_root(tmp_path, **{**GOOD, **row.files})
    host = facts.observe(["/var/lib"], root)
    found = [*facts.problems(host, NEEDS), *other_distributions(tmp_path)]
    assert [each.code for each in found] == [reason.code for reason in row.reasons], found
    for each, reason in zip(found, row.reasons, strict=True):
        assert re.search(reason.cause, each.cause) and re.search(reason.remedy, each.remedy)
