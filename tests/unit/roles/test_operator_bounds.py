"""Objects that bound what a namespace and its operators may do, as the roles render them.

Their expressions are evaluated by a real API server in the scenario `dashboard` (molecule/dashboard/vars/pods.yml).
"""

from __future__ import annotations

from typing import Any

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

from tests.conftest import ROOT

init_plugin_loader()
BOUNDS = {"quota": {"pods": 50, "requests.cpu": "16"}, "limits": {"default": {"cpu": "1"}}}


def rendered(path: str, **values: Any) -> list[dict[str, Any]]:
    text = trust_as_template((ROOT / "roles" / path).read_text(encoding="utf-8"))
    return [*filter(None, yaml.safe_load_all(Templar(loader=DataLoader(), variables=values).template(text)))]


def namespaces(value: Any) -> list[dict[str, Any]]:
    label = "trainyard.dev/bounds"
    return rendered(
        "workloads/templates/namespaces.yaml.j2", workloads_namespaces=value, __workloads_bounds_label=label
    )


def policies(*registries: str) -> dict[str, dict[str, Any]]:
    made = rendered(
        "dashboard/templates/pods_policy.yaml.j2",
        dashboard_image_registries=list(registries),
        __dashboard_namespace="trainyard-console",
        __dashboard_grace_limit=3600,
    )
    return {each["metadata"]["name"]: each for each in made if each["kind"] == "ValidatingAdmissionPolicy"}


def test_a_namespace_gets_its_quota_and_limits() -> None:
    made = {(each["kind"], each["metadata"].get("namespace")): each for each in namespaces({"team-a": BOUNDS})}
    assert made["ResourceQuota", "team-a"]["spec"] == {"hard": BOUNDS["quota"]}
    assert made["LimitRange", "team-a"]["spec"] == {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
    for kind in ("ResourceQuota", "LimitRange"):
        # By this label they are found when the inventory has them no longer.
        assert made[kind, "team-a"]["metadata"]["labels"]["trainyard.dev/bounds"] == "inventory"
    assert "trainyard.dev/bounds" not in made["Namespace", None]["metadata"]["labels"]


def test_a_namespace_is_the_one_that_a_training_makes() -> None:
    """The same labels: two that apply it with other ones would take them from each other."""
    from tests.unit.training.samples import training
    from trainyard.trainings.objects import namespace

    (made,) = namespaces({"trainings": {}})
    assert made == namespace(training(namespace="trainings"))


def test_nothing_is_made_of_what_is_not_bounded() -> None:
    assert namespaces({}) == []
    assert [each["kind"] for each in namespaces({"a": {"quota": {}, "limits": None}})] == ["Namespace"]


def test_policies_look_at_every_kind_that_makes_pods() -> None:
    for policy in policies("registry.example.org").values():
        rules = policy["spec"]["matchConstraints"]["resourceRules"]
        found = {name for rule in rules for name in rule["resources"]}
        assert found == {
            *("pods", "pods/ephemeralcontainers", "replicationcontrollers", "daemonsets", "deployments"),
            *("replicasets", "statefulsets", "cronjobs", "jobs", "jobsets"),
        }
        assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in rules)
        assert policy["spec"]["failurePolicy"] == "Fail"


def test_only_the_policy_of_labels_holds_for_every_user() -> None:
    made = policies("registry.example.org")
    assert "matchConditions" not in made["trainyard-reserved-labels"]["spec"]
    (condition,) = made["trainyard-console-pods"]["spec"]["matchConditions"]
    assert "'system:serviceaccount:trainyard-console:user-'" in condition["expression"]


def test_messages_name_the_registries() -> None:
    for registries, said in ((["a.example.org/x", "b:5000"], "a.example.org/x, b:5000."), ([], "no registry at all.")):
        spec = policies(*registries)["trainyard-console-pods"]["spec"]
        assert spec["validations"][0]["message"].endswith(said)
        assert yaml.safe_load(spec["variables"][-1]["expression"]) == registries
