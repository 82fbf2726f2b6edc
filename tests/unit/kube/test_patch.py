"""Patches of somebody else's manifest."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.kube.patch import patched

ENV = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
POD = {"containers": [{"name": "node", "env": ENV}, {"name": "other"}], "tolerations": [{"operator": "Exists"}]}
NODE = {
    "kind": "DaemonSet",
    "metadata": {"name": "node", "namespace": "n"},
    "spec": {"template": {"metadata": {}, "spec": POD}},
}
SERVICE = {"kind": "Service", "metadata": {"name": "node"}}


def patch(pod: dict[str, Any], **other: Any) -> dict[str, Any]:
    changes = {"spec": {"template": {"spec": pod}}}
    return {"kind": "DaemonSet", "name": "node", "patch": changes, "source": "calico_manifest", **other}


def test_named_things_are_merged_in_place_or_come_last() -> None:
    before = copy.deepcopy(NODE)
    env = [{"name": "C", "value": "3"}, {"name": "A", "value": "2"}]
    service, node = patched([SERVICE, NODE], [patch({"containers": [{"name": "node", "env": env}]})])
    assert service == SERVICE
    first, second = node["spec"]["template"]["spec"]["containers"]
    assert first["env"] == [{"name": "A", "value": "2"}, ENV[1], {"name": "C", "value": "3"}]
    assert second == {"name": "other"}
    assert before == NODE


def test_other_lists_and_values_are_replaced() -> None:
    (node,) = patched([NODE], [patch({"tolerations": [{"key": "a"}], "priority": 1})])
    assert node["spec"]["template"]["spec"] == {**POD, "tolerations": [{"key": "a"}], "priority": 1}
    assert node["spec"]["template"]["metadata"] == {}


def test_a_null_removes_what_it_stands_for() -> None:
    probe = {"exec": {"command": ["ask"]}, "periodSeconds": 10}
    before = {**NODE, "spec": {"template": {"spec": {"containers": [{"name": "node", "probe": probe, "tty": None}]}}}}
    change = {"exec": None, "httpGet": {"port": 9099}, "tcpSocket": None}
    (node,) = patched([before], [patch({"containers": [{"name": "node", "probe": change}]})])
    asked = {"httpGet": {"port": 9099}, "periodSeconds": 10}
    # What the manifest itself says is left alone.
    assert node["spec"]["template"]["spec"]["containers"] == [{"name": "node", "probe": asked, "tty": None}]


@pytest.mark.parametrize(
    ("objects", "given", "missing"),
    [
        ([SERVICE], patch({}), "calico_manifest has no DaemonSet node"),
        ([NODE], patch({}, name="agent"), "calico_manifest has no DaemonSet agent"),
        (
            [NODE],
            patch({"containers": [{"name": "gone"}]}),
            "calico_manifest has no container gone in DaemonSet n/node",
        ),
    ],
)
def test_a_patch_without_its_object_is_refused(
    objects: list[dict[str, Any]], given: dict[str, Any], missing: str
) -> None:
    with pytest.raises(TrainyardError, match=missing):
        patched(objects, [given])
