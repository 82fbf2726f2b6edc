"""The file system of AWS: what is refused before AWS is asked."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.site_model import Setting, Site
from trainyard.site.storage_rules import EFS_RULES

POINT = {"name": "datasets", "path": "/datasets"}


def refusals(**values: Any) -> list[str]:
    settings = [Setting(name, value, ("a",)) for name, value in values.items()]
    site = Site(settings=settings, defaults={"efs_throughput_mode": "elastic"})
    return [str(problem) for rule in EFS_RULES for problem in rule(site)]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"efs_throughput_mode": "provisioned", "efs_provisioned_mibps": 8},
        {"efs_provisioned_mibps": None},
        {"efs_access_points": [POINT, {"name": "all", "path": "/"}], "efs_subnet_ids": ["subnet-a", "subnet-b"]},
    ],
)
def test_what_can_be(values: dict[str, Any]) -> None:
    assert refusals(**values) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"efs_provisioned_mibps": 8}, "variable efs_provisioned_mibps (a) is 8: efs_throughput_mode is elastic."),
        ({"efs_throughput_mode": "provisioned"}, 'is "provisioned": efs_provisioned_mibps is not set.'),
        (
            {"efs_access_points": [POINT, {"name": "b", "path": "b"}]},
            'variable efs_access_points[1].path (a) is "b": not absolute.',
        ),
        ({"efs_access_points": [{"name": "b", "path": "/a/b/c/d/e"}]}, "more than 4 folders or 100 characters"),
        (
            {"efs_access_points": [POINT, POINT]},
            'efs_access_points[1].name (a) is "datasets": another access point has this name',
        ),
        ({"efs_subnet_ids": ["subnet-a", "subnet-a"]}, 'is "subnet-a": listed twice'),
    ],
)
def test_what_cannot_be(values: dict[str, Any], expected: str) -> None:
    found = refusals(**values)
    assert len(found) == 1 and expected in found[0], found
