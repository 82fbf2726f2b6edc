"""Every fault is named as the first cause, with its evidence and a remedy."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.why.faults_of_the_cluster import OF_THE_CLUSTER
from tests.unit.why.faults_of_the_run import OF_THE_RUN
from trainyard.why.answer import FOUND
from trainyard.why.judge import judge
from trainyard.why.snapshot import Snapshot, load
from trainyard.why.table import TABLE

FAULTS = [*OF_THE_CLUSTER, *OF_THE_RUN]


@pytest.mark.parametrize(("code", "make"), [each[1:] for each in FAULTS], ids=[each[0] for each in FAULTS])
def test_fault(code: str, make: Callable[[], Snapshot]) -> None:
    answer = judge(make())
    found = [(each.part, each.code) for each in answer.findings]
    assert answer.cause is not None, answer.headline
    assert answer.cause.code == code, found
    assert answer.status == FOUND, answer.unread
    assert answer.cause.message and answer.cause.remedy and answer.headline.startswith("mnist ")


KEPT = sorted((Path(__file__).parent / "snapshots").glob("*.json.gz"))
"""Of labs: `CODE-fault.json.gz`. `tests/bench/why.py` writes them."""


@pytest.mark.skipif(not KEPT, reason="no snapshot of a lab is kept yet")
@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_snapshot_of_a_lab(path: Path) -> None:
    answer, code = judge(load(gzip.decompress(path.read_bytes()).decode())), path.name.partition("-")[0]
    assert answer.cause is not None and answer.cause.code == code, answer.headline


def test_every_code_of_a_fault_has_one() -> None:
    # In test_judge; and in test_known_errors, because it is never the first cause.
    others = {"deleted", "lost_peer"}
    assert {rule.code for rule in TABLE if rule.fault} - others == {code for _, code, _ in FAULTS}
