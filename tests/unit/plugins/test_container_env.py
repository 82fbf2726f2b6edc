"""The filter that sets variables in a container of a manifest."""

from __future__ import annotations

import copy

import pytest
from ansible.errors import AnsibleFilterError

from plugins.filter.container_env import container_env

ENV = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
NODE = {
    "kind": "DaemonSet",
    "metadata": {"name": "node", "namespace": "n"},
    "spec": {"template": {"metadata": {}, "spec": {"containers": [{"name": "node", "env": ENV}, {"name": "other"}]}}},
}
SERVICE = {"kind": "Service", "metadata": {"name": "node"}}


def test_values_are_replaced_in_place_or_come_last() -> None:
    before = copy.deepcopy(NODE)
    service, node = container_env([SERVICE, None, NODE], "node", {"C": "3", "A": "2"}, "manifest")
    assert service == SERVICE
    first, second = node["spec"]["template"]["spec"]["containers"]
    assert first["env"] == [{"name": "A", "value": "2"}, ENV[1], {"name": "C", "value": "3"}]
    assert second == {"name": "other"}
    assert before == NODE


@pytest.mark.parametrize("documents", [[], [SERVICE], [{**NODE, "kind": "Deployment"}]])
def test_a_manifest_without_the_container_is_refused(documents: list) -> None:
    with pytest.raises(AnsibleFilterError, match="network_manifest has no DaemonSet node"):
        container_env(documents, "node", {"A": "2"}, "network_manifest")
