"""A record is proof of the description that it was run by, and of no other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.verify.test_training import RESULT, seen, wanted
from trainyard.verify import training_checks as verify_training
from trainyard.verify.verdict import FAIL, PASS


@pytest.mark.parametrize(
    ("recorded", "asked", "said"),
    [
        ({}, {}, ""),
        ({}, {"train_steps": 2000, "description_hash": "a" * 64}, ""),
        ({"description_hash": "a" * 64}, {"train_steps": 2000, "description_hash": "a" * 64}, ""),
        ({}, {"train_steps": 4000}, "(unknown, 2000 steps) than the site's (unknown, 4000 steps)"),
        (
            {"description_hash": "a" * 64},
            {"train_steps": 2000, "description_hash": "b" * 64},
            "(aaaaaaaaaaaa, 2000 steps) than the site's (bbbbbbbbbbbb, 2000 steps)",
        ),
    ],
)
def test_what_was_run_by_another_description_is_no_proof(
    recorded: dict[str, Any], asked: dict[str, Any], said: str
) -> None:
    check = verify_training.training(wanted(**asked), seen({**RESULT, **recorded}))
    assert check.result == (FAIL if said else PASS)
    assert said in check.detail
    if said:
        assert check.detail.startswith("the record of m belongs to another description")
        assert check.detail.endswith("run site.yml, or train.yml with this run")


def test_the_receipt_says_which_description_was_run() -> None:
    assert verify_training.summary(wanted(), seen({**RESULT, "description_hash": "a"}))["description_hash"] == "a"
