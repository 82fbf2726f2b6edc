"""Injection and removal of faults in a lab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mishaps import until
from stand import NAMESPACE
from timed import BenchError
from why_lab import (
    LIMIT,
    OWNER,
    WORKER,
    Scene,
    gone,
)

from trainyard.kube.placement import amount
from trainyard.trainings.names import NAME_LABEL
from trainyard.trainings.objects import logs_volume
from trainyard.trainings.template import logs_claim
from trainyard.trainings.tensorboard import tensorboard_name

JOBSET = ("jobset-system", "jobset-controller-manager")
DNS = ("kube-system", "coredns")
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
ASIDE = "/root/kube-scheduler.yaml"
FULL = "/var/lib/trainyard/why-full"
"""A folder of 1 MiB on a node for the files of a run."""


def hold(scene: Scene) -> None:
    """Let another run take the free CPUs of both workers, except for the needs of chief and ps."""
    for node in ("worker1", WORKER):
        free = scene.room(node)["cpu"]
        if free < 0.8:
            raise BenchError(f"{node} has {free:.2f} CPUs left, too few to hold most of them.")
        scene.put(scene.filler(node, cpu=f"{int((free - 0.6) * 1000)}m", memory="64Mi"))
    until("the pods that hold it", lambda: held_now(scene), LIMIT)


def held_now(scene: Scene) -> bool:
    held = scene.api.list("v1", "Pod", NAMESPACE, labels=f"{NAME_LABEL}=why-holder")
    return bool(held) and all((pod.get("status") or {}).get("phase") == "Running" for pod in held)


def hold_gpus(scene: Scene) -> None:
    free = int(scene.room(WORKER).get("nvidia.com/gpu", 0))
    if not free:
        raise BenchError(f"{WORKER} has no GPU left to hold.")
    scene.put(scene.filler(WORKER, gpu=str(free), cpu="50m", memory="64Mi"))
    until("the pod that holds them", lambda: held_now(scene), LIMIT)


def on_worker(**spec: Any) -> Callable[[Scene], None]:
    return lambda scene: scene.patch("v1", "Node", WORKER, {"spec": spec})


def taints(scene: Scene, more: list[dict[str, str]]) -> None:
    node = scene.api.get("v1", "Node", WORKER) or {}
    there = [
        each for each in (node.get("spec") or {}).get("taints") or [] if not each["key"].startswith("trainyard.dev/why")
    ]
    scene.patch("v1", "Node", WORKER, {"spec": {"taints": [*there, *more]}})


def registry(verb: str) -> Callable[[Scene], None]:
    return lambda scene: scene.stand.on_node("mirror1", "systemctl", verb, "nginx", "docker-registry") and None


def claim(name: str, **spec: Any) -> dict[str, Any]:
    """Return a claim for a role's volume."""
    wanted = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Mi"}},
        "storageClassName": "",
        **spec,
    }
    meta = {"name": name, "namespace": NAMESPACE, "labels": OWNER}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": wanted}


def far_volume(name: str) -> dict[str, Any]:
    """Return a volume on a node that no longer exists."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["worker9"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": OWNER},
        "spec": {
            "capacity": {"storage": "1Mi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "",
            "local": {"path": "/var/lib/trainyard/why-gone"},
            "claimRef": {"namespace": NAMESPACE, "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
    }


def gone_volume(scene: Scene) -> None:
    scene.put(far_volume("why-gone"), claim("why-gone", volumeName="why-gone"))


def quota(namespace: str) -> dict[str, Any]:
    """Return a quota that admits no pod."""
    meta = {"name": "why", "namespace": namespace, "labels": OWNER}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "0"}}}


def cut_policy(scene: Scene) -> None:
    """Change the run's own policy so that it admits no pod to the ps; the namespace's policy denies all."""
    selector = {"matchLabels": {NAME_LABEL: scene.run.name}}
    selector["matchExpressions"] = [{"key": "trainyard.dev/role", "operator": "NotIn", "values": ["ps"]}]  # type: ignore[assignment]
    path = {"spec": {"podSelector": selector}}
    scene.patch("networking.k8s.io/v1", "NetworkPolicy", scene.run.name, path, NAMESPACE)


def without_controller(scene: Scene) -> None:
    scene.scale(*JOBSET, 0)
    pod = scene.watched().pod("worker")
    scene.api.delete("v1", "Pod", pod["metadata"]["name"], NAMESPACE, grace=1)


def without_scheduler(scene: Scene) -> None:
    scene.stand.on_node("cp1", "mv", MANIFEST, ASIDE)
    until("the end of the scheduler", lambda: gone(scene.api, "v1", "Pod", "kube-scheduler-cp1", "kube-system"), LIMIT)


def with_scheduler(scene: Scene) -> None:
    scene.stand.on_node("cp1", "sh", "-c", f"test ! -e {ASIDE} || mv {ASIDE} {MANIFEST}")
    until("the scheduler", lambda: not gone(scene.api, "v1", "Pod", "kube-scheduler-cp1", "kube-system"), LIMIT)


def kubelet(verb: str) -> Callable[[Scene], None]:
    return lambda scene: scene.stand.on_node(WORKER, "systemctl", verb, "kubelet") and None


def small_volume(scene: Scene) -> None:
    script = f"mkdir -p {FULL} && mountpoint -q {FULL} || mount -t tmpfs -o size=1m,mode=0777 tmpfs {FULL}"
    scene.stand.on_node(WORKER, "sh", "-c", script)


def no_small_volume(scene: Scene) -> None:
    # TensorBoard would hold the claim forever.
    claim, space = logs_claim(scene.run), scene.run.namespace
    scene.api.delete("apps/v1", "Deployment", tensorboard_name(claim), space)
    scene.api.delete("v1", "PersistentVolumeClaim", claim, space)
    scene.api.delete("v1", "PersistentVolume", logs_volume(scene.run))
    scene.stand.on_node(WORKER, "sh", "-c", f"umount {FULL} || true; rmdir {FULL} || true")


def break_gpus(scene: Scene) -> None:
    for index in ("0", "1"):
        scene.stand.on_node(WORKER, "lab-gpus", "xid", index, "79")
    until("GPUs that are unhealthy", lambda: not offered(scene), LIMIT)


def mend_gpus(scene: Scene) -> None:
    for index in ("0", "1"):
        scene.stand.on_node(WORKER, "lab-gpus", "recover", index)
    scene.stand.play("playbooks/gpu_recover.yml", "-e", f"gpu_node={WORKER}", "-e", f"gpu_confirm={WORKER}")


def offered(scene: Scene) -> float:
    node = scene.api.get("v1", "Node", WORKER) or {}
    return amount(((node.get("status") or {}).get("allocatable") or {}).get("nvidia.com/gpu", "0"))


def other_driver(scene: Scene) -> None:
    """Install another library beside the loaded module, as a manual upgrade does; site.yml labels the node."""
    scene.stand.on_node(WORKER, "lab-gpus", "driver", "580.126.09")
    try:
        scene.stand.play("site.yml", limit=1200.0)
    except BenchError as error:
        print(f"why: site.yml ends with the verdict on the driver: {str(error).splitlines()[0]}", flush=True)
    until("GPUs that are not offered", lambda: not offered(scene), LIMIT)


def same_driver(scene: Scene) -> None:
    scene.stand.on_node(WORKER, "lab-gpus", "driver", "580.95.05")
    scene.stand.play("playbooks/gpu_recover.yml", "-e", f"gpu_node={WORKER}", "-e", f"gpu_confirm={WORKER}")
