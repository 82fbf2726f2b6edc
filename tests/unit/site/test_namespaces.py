"""What namespaces of trainings may use."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.site.console_rules import user_namespaces
from trainyard.site.namespace_rules import NAMESPACE_RULES
from trainyard.site.site_model import Setting, Site

QUOTA = {
    "requests.cpu": "16",
    "limits.memory": "64Gi",
    "pods": 50,
    "count/jobs.batch": "20",
    "requests.nvidia.com/gpu": 4,
}
LIMITS = {"default": {"cpu": 1, "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "8"}}


def refusals(value: Any) -> list[str]:
    site = Site(settings=[Setting("workloads_namespaces", value, ("cp1",))], namespaces=frozenset({"jobset-system"}))
    return [str(problem) for rule in NAMESPACE_RULES for problem in rule(site)]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"team-a": {}},
        {"team-a": {"quota": QUOTA, "limits": LIMITS}, "team-b": {"quota": None}},
        {"team-a": {"limits": {"min": {"cpu": "20m", "memory": "64Mi"}, "max": {"memory": "512Mi"}}}},
    ],
)
def test_namespaces_that_can_be(value: Any) -> None:
    assert refusals(value) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"Team": {}}, "not a valid name of a namespace"),
        ({"a/../b": {}}, "not a valid name of a namespace"),
        ({"a\nkind: Secret": {}}, "not a valid name of a namespace"),
        ({"x" * 64: {}}, "not a valid name of a namespace"),
        ({"kube-system": {}}, "not for trainings"),
        ({"jobset-system": {}}, "not for trainings"),
        ({"default": {}}, "not for trainings"),
        ({"a": 3}, "not a mapping"),
        ({"a": {"quotas": {}}}, "unknown"),
        ({"a": {"quota": ["cpu"]}}, "not a mapping"),
        ({"a": {"quota": {"requests.cpu": "many"}}}, "not a quantity"),
        ({"a": {"quota": {"requests.cpu": True}}}, "not a quantity"),
        ({"a": {"quota": {"requests.cpu": "-1"}}}, "not a quantity"),
        ({"a": {"quota": {"requests.cpu": {"a": 1}}}}, "not a quantity"),
        ({"a": {"quota": {"a b": 1}}}, "not a resource name"),
        ({"a": {"limits": {"default_request": {"cpu": 1}}}}, "Use one of default"),
        ({"a": {"limits": {"default": "1"}}}, "not a mapping"),
        ({"a": {"limits": 1}}, "not a mapping"),
        ({"a": {"limits": {"min": {"memory": "128Mi"}}}}, "Set at most 64Mi"),
        ({"a": {"limits": {"max": {"cpu": "500m"}}}}, "Set at least 1"),
    ],
)
def test_those_that_cannot_be_are_refused(value: Any, said: str) -> None:
    (refusal,) = refusals(value)
    assert said in refusal and "variable workloads_namespaces" in refusal


def test_a_user_may_have_a_namespace_that_is_bounded_alone() -> None:
    users = Setting("dashboard_users", [{"name": "alice", "level": "viewer", "namespaces": ["team-a"]}])
    assert list(user_namespaces(Site(settings=[users, Setting("workloads_namespaces", {"team-a": {}})]))) == []
    assert len(list(user_namespaces(Site(settings=[users])))) == 1
