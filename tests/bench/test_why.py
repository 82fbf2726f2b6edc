"""Tests of the faults for `trainyard why`: each has a valid run, effective changes, and an end."""

from __future__ import annotations

from typing import Any

import pytest
import why
import why_injections as do
import why_lab
import why_seen
import why_together
from why_faults import FAULTS, description

from tests.unit.apiserver import ApiServer
from tests.unit.why.cluster import NODES, node
from tests.unit.why.samples import event, look, over, pod, said, steps, unplaced, waiting
from trainyard.kube.api import Api
from trainyard.trainings.jobset import run_object
from trainyard.why.table import TABLE

IMAGES = {name: {"digest": f"sha256:{'0' * 64}"} for name in ("image_tensorflow", "image_workloads", "image_mnist")}
ASKED = {
    "never_fits", "held_by", "cordoned", "tainted", "image_missing", "registry_down", "claim_unbound", "volume_node",
    "quota", "pod_security", "controller_down", "scheduler_down", "dns_down", "node_not_ready", "silent",
    "policy_blocks", "oom_killed", "disk_full", "below_bound", "refused_input", "gpu_unhealthy", "gpu_skew",
}  # fmt: skip
"""Codes that must be covered."""


def test_every_code_that_is_asked_for_has_a_fault() -> None:
    codes = {code for fault in FAULTS.values() for code in fault.codes}
    assert codes >= ASKED
    assert codes <= {rule.code for rule in TABLE if rule.fault}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_a_run_that_can_be(name: str) -> None:
    run, fault = description(IMAGES, name), FAULTS[name]
    plain = run_object(run, "a", "fresh")
    made = why_lab.altered(plain, asleep=fault.asleep, places={"ps": "worker1"}, **fault.changes)
    jobs = {job["name"]: job["template"]["spec"]["template"]["spec"] for job in made["spec"]["replicatedJobs"]}
    sleeps = {name for name, each in jobs.items() if each["containers"][0]["command"] == why_lab.SLEEP}
    assert sleeps == set(fault.asleep) and jobs["ps"]["nodeSelector"] == {"kubernetes.io/hostname": "worker1"}
    spec = jobs["worker"]
    for key, value in {**fault.changes.get("pod", {}), **fault.changes.get("container", {})}.items():
        assert value in (spec.get(key), spec["containers"][0].get(key))
    assert len(run.name) <= 40 and (run.logs.path == do.FULL) == fault.own_volume


def test_what_is_put_beside_a_run_goes_with_the_fault() -> None:
    server = ApiServer()
    scene = why_lab.Scene(stand=type("Stand", (), {"api": Api(server)})(), run=description(IMAGES, "quota"))  # type: ignore[arg-type]
    scene.put(do.claim("why-unbound"))
    assert server.objects
    scene.clean()
    assert not server.objects and not scene.made


def test_another_run_holds_most_of_a_node() -> None:
    scene = why_lab.Scene(stand=None, run=description(IMAGES, "held"))  # type: ignore[arg-type]
    made = scene.filler("worker2", cpu="1500m", gpu="2")
    assert made["metadata"]["labels"]["trainyard.dev/run"] == "why-holder"
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1500m", "nvidia.com/gpu": "2"}
    assert made["spec"]["securityContext"]["runAsNonRoot"]


REFUSED: dict[str, Any] = {"kind": "Job", "metadata": {"name": "mnist-worker-0", "uid": "j"}}
OTHERS: dict[str, Any] = {"kind": "Job", "metadata": {"name": "why-quota-worker-0", "uid": "k"}}


@pytest.mark.parametrize(
    ("seen", "there", "not_there"),
    [
        (why_seen.is_unplaced, look([unplaced("chief")]), look()),
        (why_seen.is_refused, look(events=[event(REFUSED, "FailedCreate", "no")]),
         look(events=[event(OTHERS, "FailedCreate", "no")])),
        (why_seen.is_without_image, look([waiting("worker", 0, "ImagePullBackOff")]), look([waiting("worker")])),
        (why_seen.is_over, look([over("worker", 137)]), look([over("worker", 0)])),
        (why_seen.is_made, look([pod("chief")]), look([])),
        (why_seen.has_begun, look(log=said(("start", 1.0))), look(log="")),
        (why_seen.is_lost, look(nodes=[*NODES[:2], node("worker2", ready=False)]), look()),
        (why_seen.is_silent, look(log=said(*steps(60, 6))), look(log=said(*steps(60, 1, 1)))),
    ],
)  # fmt: skip
def test_a_fault_is_seen_when_it_is_there(seen: Any, there: Any, not_there: Any) -> None:
    assert seen(there)
    assert not seen(not_there)


def test_a_lab_is_well_when_its_nodes_are() -> None:
    assert [why._is_ready(each) for each in (NODES[0], node("worker2", ready=False))] == [True, False]


@pytest.mark.parametrize("name", why_together.SIX)
def test_six_of_them_find_a_place_side_by_side(name: str) -> None:
    run = why_together.small(description(IMAGES, name), name, "datasets")
    made = why_lab.altered(
        run_object(run, "a", "fresh"),
        asleep=FAULTS[name].asleep,
        places=why_together.places(name),
        **FAULTS[name].changes,
    )
    for job in made["spec"]["replicatedJobs"]:
        spec = job["template"]["spec"]
        assert spec["parallelism"] == 1
        # The other runs do not use the node without a kubelet.
        alone = (name, job["name"]) == ("kubelet", "worker")
        where = spec["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"]
        assert where == ("worker2" if alone else "worker1")
    assert run.data_claim == "datasets" and not run.data_image
    assert run.namespace == ("why-quota" if name == "quota" else "trainings")
