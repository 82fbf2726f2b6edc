"""The cluster that browser tests look at: runs in every state, nodes with GPUs, receipts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.browser.cluster import Cluster
from tests.browser.lines import chief_log
from tests.browser.world import CONSOLE, HOSTILE, SPACE

CHECKS = (
    ("nodes_ready", "pass", "3 of 3 nodes are ready"),
    ("system_pods", "pass", "all pods of the cluster itself run"),
    ("dns", "pass", "names of the cluster are resolved on every node"),
    ("network_policies", "pass", "a pod that is not of the run is kept away from its port"),
    ("gpus_offered", "pass", "4 of 4 GPUs are offered"),
    ("gpus_healthy", "fail", "worker2: 1 of 2 GPUs is unhealthy: broken rows of its memory could not be remapped"),
    ("console", "pass", "answers over a certificate of the site's authority"),
    ("usage_api", "pass", "usage of 3 of 3 nodes"),
)


def scene(now: datetime | None = None, *, hostile: bool = False) -> Cluster:
    """The cluster at a time.

    :param hostile: names, messages and logs have markup in them wherever the cluster lets them.
    """
    world = Cluster(now)
    bad = HOSTILE if hostile else ""
    world.node("controller1", control=True)
    world.node("worker1", gpus=2)
    world.node("worker2", gpus=2, healthy=1)
    _going(world, bad)
    _waiting(world, bad)
    _over(world, bad)
    for number, seconds in enumerate((300, 90_000, 180_000)):
        checks = [
            {"name": name, "result": "pass" if number else result, "detail": detail + bad}
            for name, result, detail in CHECKS
        ]
        checks.append(
            {
                "name": "training",
                "run": "mnist-ps",
                "result": "pass",
                "detail": "accuracy 0.968, bound 0.95, 2000 of 2000 steps",
            }
        )
        world.receipt(
            world.ago(seconds).replace("-", "").replace(":", ""), _receipt(world, seconds, checks, failed=not number)
        )
    _others(world, bad)
    return world


def _going(world: Cluster, bad: str) -> None:
    at = world.now.timestamp()
    for name, workload, until, gpus in (("mnist-ps", "mnist_ps", 1240, 0), ("cnn", "cnn_ps", 1200, 1)):
        world.run(name, {"chief": 1, "ps": 1, "worker": 2}, workload=workload, gpus=gpus)
        chief = world.pod(name, "chief", 0, "worker1")
        world.texts[chief] = chief_log(until, at) + (f"{bad}\n" if bad else "")
        world.pod(name, "ps", 0, "worker2")
        for index in range(2):
            world.pod(name, "worker", index, "worker1", gpus=gpus)
        world.event(f"{name}.1", chief.rpartition("/")[2], "Started", f"Started container tensorflow{bad}", 580)
        world.event(
            f"{name}.2", chief.rpartition("/")[2], "Pulled", "Container image is already present on the machine", 581
        )
        world.event(f"{name}.3", name, "JobsCreated", "3 Jobs were created", 590, "JobSet")
        meta = {
            "name": f"tensorboard-{name}-logs",
            "namespace": SPACE,
            "labels": {"trainyard.dev/tensorboard": f"{name}-logs"},
        }
        world.add("apps/v1", "Deployment", "deployments", meta, spec={}, status={"availableReplicas": 1})
    world.event(
        "x.1",
        f"mnist-ps-worker-0-1-{'b'}x9k2",
        "FailedMount",
        f"MountVolume.SetUp failed for volume code: image is pulled{bad}",
        585,
    )


def _waiting(world: Cluster, bad: str) -> None:
    world.run("wide", {"chief": 1, "ps": 1, "worker": 2}, gpus=1, submitted=130)
    world.texts[world.pod("wide", "chief", 0, "worker2")] = (
        f'{{"event": "start", "time": {world.now.timestamp() - 100}}}\n'
    )
    world.pod("wide", "ps", 0, "worker2")
    world.pod("wide", "worker", 0, "worker2", gpus=1)
    world.pod(
        "wide",
        "worker",
        1,
        gpus=1,
        waits=f"0/3 nodes are available: 2 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s).{bad}",
    )


def _over(world: Cluster, bad: str) -> None:
    world.record("first", result="passed")
    world.record(
        "bound",
        result="failed",
        accuracy=0.941,
        why=f"exit 3: accuracy 0.941 is below the bound 0.95{bad}",
        submitted_at=world.ago(40_000),
    )
    world.record(
        "evening",
        result="stopped",
        steps=800,
        accuracy=0.95,
        why="alice stopped it at step 800",
        submitted_at=world.ago(70_000),
    )


def _receipt(world: Cluster, seconds: float, checks: list[Any], *, failed: bool) -> dict[str, Any]:
    return {
        "schema": 2,
        "verdict": "fail" if failed else "pass",
        "checks": checks,
        "written_at": world.ago(seconds),
        "wall_seconds": 412.0,
        "warnings": ["the certificate of the kubelet of worker1 ends in 29 days"] if failed else [],
        "nodes": [
            {"name": name, "ready": True, "kubelet": "v1.36.1", "containerd": "2.2.1"}
            for name in ("controller1", "worker1", "worker2")
        ],
        "versions": {"calico": "v3.32.0", "coredns": "v1.13.1", "jobset": "v0.12.0", "kubelet": "v1.36.1"},
        "trainings": [
            {
                "name": "mnist-ps",
                "workload": "mnist_ps",
                "result": "passed",
                "accuracy": 0.968,
                "accuracy_bound": 0.95,
                "steps": 2000,
                "steps_per_second": 118.4,
                "seconds": 31.2,
                "compute": "cpu",
                "left_alone": False,
            }
        ],
        "measured": {"dns_milliseconds": 3.1, "restarts": 0},
    }


def _others(world: Cluster, bad: str) -> None:
    """What the plain pages of the cluster show."""
    for name, secret in (("login", {"token": "c2VjcmV0LWNhbmFyeQ=="}),):
        note = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"token":"c2VjcmV0LWNhbmFyeQ=="}}'}
        world.add(
            "v1",
            "Secret",
            "secrets",
            {"name": name, "namespace": SPACE, "annotations": note},
            type="Opaque",
            data=secret,
        )
    world.add(
        "v1",
        "ConfigMap",
        "configmaps",
        {"name": "settings", "namespace": CONSOLE, "annotations": {"note": bad or "none"}},
        data={"site": f"lab{bad}\nsecond line\n"},
    )
    for name in (SPACE, CONSOLE, "kube-system"):
        labels = {"trainyard.dev/trainings": "true"} if name == SPACE else {}
        world.add("v1", "Namespace", "namespaces", {"name": name, "labels": labels}, status={"phase": "Active"})
