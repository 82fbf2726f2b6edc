"""What a run computed on, as verdict and receipt say it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.verify.test_training import RESULT, seen, wanted
from trainyard.verify import training_checks as verify_training
from trainyard.verify.verdict import PASS


@pytest.mark.parametrize(
    ("device", "more"),
    [
        ({"compute": "cpu", "gpu_allocated": 1}, "; it used the CPU: 1 GPU allocated and not used"),
        ({"compute": "cpu", "gpu_allocated": 0}, ""),
        ({"compute": "gpu", "gpu_allocated": 1}, ""),
        ({}, ""),
    ],
)
def test_a_run_that_did_not_use_its_gpus_says_so(device: dict[str, Any], more: str) -> None:
    check = verify_training.training(wanted(), seen({**RESULT, **device}))
    assert (check.result, check.detail) == (PASS, f"m ended after 2000 steps, accuracy 0.9366, bound 0.9{more}")


def test_the_receipt_has_what_a_run_computed_on() -> None:
    shown = verify_training.summary(wanted(), seen({**RESULT, "compute": "cpu", "gpu_allocated": 1}))
    assert (shown["compute"], shown["gpu_allocated"]) == ("cpu", 1)
    assert "compute" not in verify_training.summary(wanted(), seen(RESULT))
