"""The folder that all containers of a lab have in common."""

from __future__ import annotations

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.lab import lab_model, lab_nodes

LAB = lab_model.parse(
    {
        "name": "lab",
        "subnet": "10.99.0.0/24",
        "nodes": {"one": "10.99.0.21"},
        "volumes": [],
        "image": {"layout": "/nowhere", "digest": "sha256:0123"},
        "state_dir": "/nowhere/lab",
        "shared": "/srv/shared",
    }
)
STOPPED = {"StartedAt": "2026-01-01T00:00:00Z", "Running": False, "Status": "exited", "Pid": 0}


def test_a_node_without_it_is_named() -> None:
    with pytest.raises(TrainyardError, match="node one was created without the shared folder /srv/shared"):
        lab_nodes.plan_nodes(LAB, {"lab-one": {"Id": "c0ffee", "State": STOPPED, "Mounts": []}})


def test_a_node_with_it_is_started() -> None:
    entry = {"Id": "c0ffee", "State": STOPPED, "Mounts": [{"Destination": "/srv/shared"}]}
    steps, _ = lab_nodes.plan_nodes(LAB, {"lab-one": entry})
    assert [step.what for step in steps] == ["Start the node one"]
