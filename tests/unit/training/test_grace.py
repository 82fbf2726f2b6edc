"""How long a stop waits is bounded, whatever the object says that it stops."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.trainings.run_state import MOST_GRACE_SECONDS, grace


def job(*seconds: Any) -> dict[str, Any]:
    pods = [{"template": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": each}}}}} for each in seconds]
    return {"spec": {"replicatedJobs": pods}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((30, 600), 600),
        ((10**9,), MOST_GRACE_SECONDS),
        ((10**20,), MOST_GRACE_SECONDS),
        (("90",), 90),
        ((-1, "x" * 10_000, [], None, True, float("nan")), 0),
    ],
)
def test_grace(given: tuple[Any, ...], expected: float) -> None:
    assert grace(job(*given)) == expected
