"""The judge of the zoo: a guard that is switched off, another reason, or another text makes its row fail."""

from __future__ import annotations

from typing import Any

import pytest

from tests.zoo.refused import faults, host_of, inventory
from tests.zoo.rows import REFUSED, WORKS, Row, rows
from trainyard.host.preflight_checks import CHECKS

ROWS = [row for row in rows() if row.kind == "container"]


def result(row: Row, **changes: Any) -> dict[str, Any]:
    """What the report has of a row whose guards all work."""
    samples = {"disk_86": "86", "lock_held": "6"}
    texts = [
        {
            "code": reason.code,
            "cause": reason.cause.replace(".*", " ").replace("[0-9]+", "7").replace("[5-9]", samples.get(row.name, "")),
            "remedy": reason.remedy,
        }
        for reason in row.reasons
    ]
    (system,) = row.variables.get("base_supported_systems", ["debian-13"])
    about = f"{system} x86_64, node address 10.89.0.7 on eth0"
    about += ", the default route on ext0 is not used" if row.name == "two_nics" else ""
    return {"state": row.expected, "reasons": texts, "about": about, **changes}


@pytest.mark.parametrize("row", [row for row in ROWS if row.expected == REFUSED], ids=lambda row: row.name)
def test_a_guard_that_is_switched_off_fails_its_row(row: Row) -> None:
    assert faults(row, {"state": WORKS, "reasons": [], "about": ""}, row.expected)
    for number in range(len(row.reasons)):
        found = result(row)
        del found["reasons"][number]
        assert any("no reason fits" in each for each in faults(row, found, row.expected))


@pytest.mark.parametrize("row", [row for row in ROWS if row.expected == REFUSED], ids=lambda row: row.name)
def test_another_text_or_another_reason_fails_it_too(row: Row) -> None:
    found = result(row)
    found["reasons"][0] |= {"remedy": "Do something."}
    assert any("no reason fits" in each for each in faults(row, found, row.expected))
    found = result(row)
    found["reasons"].append({"code": "memory", "cause": "it has little", "remedy": "Give it more."})
    assert any("an unexpected reason" in each for each in faults(row, found, row.expected))


@pytest.mark.parametrize("row", [row for row in ROWS if row.expected == WORKS], ids=lambda row: row.name)
def test_a_host_that_works_is_reported_as_it_is(row: Row) -> None:
    assert faults(row, result(row), row.expected) == []
    assert faults(row, result(row, state=REFUSED), row.expected)
    assert faults(row, result(row, about="alpine-3"), row.expected)


def test_each_row_is_a_worker_with_its_variables(tmp_path: Any) -> None:
    import yaml

    file = inventory(ROWS, tmp_path, {row.name: row.variables for row in ROWS})
    workers = yaml.safe_load(file.read_text(encoding="utf-8"))["all"]["children"]["workers"]["hosts"]
    assert list(workers) == [host_of(row) for row in ROWS]
    assert len({host["ansible_host"] for host in workers.values()}) == len(ROWS)
    assert workers["disk-86"]["kubernetes_kubelet_config"] == {}
    assert set(CHECKS) >= {reason.code for row in ROWS for reason in row.reasons}
