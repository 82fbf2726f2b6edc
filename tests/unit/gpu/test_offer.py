"""What a host has to offer, from what its driver shows, its bus, and the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.gpu.offer import expected, fault, units

WHOLE: dict[str, Any] = {"mig": None, "mig_devices": 0}
SEVEN = {"mig": "enabled", "mig_devices": 7}


def info(*gpus: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"source": "nvml", "error": None, "on_bus": None, "skew": False, "healthy": True, "gpus": gpus, **changes}


@pytest.mark.parametrize(
    ("seen", "said", "strategy", "number"),
    [
        (info(WHOLE, WHOLE), None, "none", 2),
        # The verdict says that one is away; the role waits for those that there are.
        (info(WHOLE, on_bus=2), None, "none", 1),
        (info(WHOLE), 2, "none", 2),
        (info(SEVEN, SEVEN), None, "none", 2),
        (info(SEVEN, SEVEN), None, "single", 14),
        (info(SEVEN), 2, "single", 8),
        (info(WHOLE, WHOLE), None, "single", 2),
        (info(SEVEN, WHOLE), None, "mixed", 1),
        (info(SEVEN, {**WHOLE, "lost": True}), None, "single", None),
        (info(SEVEN, {**WHOLE, "lost": True}), None, "none", 2),
        ({}, None, "none", None),
        ({}, 3, "none", 3),
        ({}, 3, "single", None),
        (info(source="none", on_bus=4), None, "none", 4),
    ],
)
def test_what_a_host_offers(seen: dict[str, Any], said: int | None, strategy: str, number: int | None) -> None:
    assert units(seen, said, strategy) == number


@pytest.mark.parametrize(
    ("seen", "said", "number"),
    [
        (info(WHOLE), None, 1),
        (info(WHOLE, on_bus=2), None, 2),
        # A bus that a virtual machine does not show.
        (info(WHOLE, WHOLE, on_bus=1), None, 2),
        (info(WHOLE, on_bus=2), 1, 1),
        (info(source="none"), None, None),
        (info(skew=True, on_bus=2), None, 2),
    ],
)
def test_the_gpus_of_a_host(seen: dict[str, Any], said: int | None, number: int | None) -> None:
    assert expected(seen, said) == number


def test_a_host_without_a_fault_has_none() -> None:
    assert fault(info(WHOLE, on_bus=2), 1) == fault(info(WHOLE, WHOLE), None) == ""
