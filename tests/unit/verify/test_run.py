"""What the verdict says of the run itself."""

from __future__ import annotations

import pytest

from tests.unit.verify.views import site_checks
from trainyard.verify.cluster_checks import Expected
from trainyard.verify.verdict import FAIL, UNKNOWN


@pytest.mark.parametrize(
    ("given", "planning", "expected"),
    [
        ({}, False, []),
        ({"missing_hosts": ["w2"]}, False, [("hosts_reached", FAIL)]),
        ({"missing_hosts": ["w2"]}, True, [("hosts_reached", UNKNOWN)]),
        ({"left_out": ["the validation"]}, False, [("run_complete", UNKNOWN)]),
    ],
)
def test_what_the_run_lost_or_left_out_is_named(
    given: dict[str, list[str]], planning: bool, expected: list[tuple[str, str]]
) -> None:
    known = Expected(nodes=["w1"], kubelet_version="1", containerd_version="2", planning=planning, **given)
    checks = site_checks(known, names=("run_complete", "hosts_reached"))
    assert [(check.name, check.result) for check in checks] == expected
    assert all(name in check.detail for check in checks for names in given.values() for name in names)
