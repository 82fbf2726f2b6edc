"""Faults of nodes, the control plane, the network, registries and places, as snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.why.cluster import CONTROL_PLANE, GPU, NODES, SYSTEM, ago, claims, node, other, system
from tests.unit.why.samples import BEGUN, PODS, event, jobs, live, look, pod, said, unplaced, waiting
from trainyard.why.snapshot import Snapshot

REST = PODS[:3]
SMALL = [CONTROL_PLANE, node("worker1", "1"), node("worker2", "1")]
WAITS = unplaced("worker", 1)
FULL = [other("cnn", "worker-0", "worker1", cpu="3900m"), other("cnn", "worker-1", "worker2", cpu="3900m")]
NEVER = unplaced("worker", 1, run=live(worker={"limits": {"cpu": "64", "memory": "1Gi"}}))


def gpu_pod(index: int = 0) -> dict[str, Any]:
    return unplaced("worker", index, f"0/3 nodes are available: 2 Insufficient {GPU}.", run=live(worker={"gpus": 1}))


def gpu_nodes(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [CONTROL_PLANE, node("worker2", "1"), *more]


IMAGE = "mirror.lab:443/trainyard/tensorflow:0"
PULL = f'Failed to pull image "{IMAGE}": rpc error: code = {{}}'
NOT_FOUND = PULL.format(
    f'NotFound desc = failed to pull and unpack image "{IMAGE}": failed to resolve reference: not found'
)
DOWN = PULL.format(
    'Unavailable desc = failed to resolve image: failed to do request: Head "https://mirror.lab/v2/": dial tcp '
    "10.88.0.2:443: connect: connection refused"
)
TLS = PULL.format(
    'Unknown desc = failed to do request: Head "https://mirror.lab/v2/": tls: failed to verify certificate: x509: '
    "certificate signed by unknown authority"
)
LOGIN = PULL.format("Unknown desc = failed to resolve reference: unexpected status: 401 Unauthorized")


def pulls(message: str) -> Snapshot:
    mine = waiting("worker", 1, "ImagePullBackOff", f'Back-off pulling image "{IMAGE}"')
    return look([*REST, mine], events=[event(mine, "Failed", message)])


def on_job(role: str, message: str, **more: Any) -> Snapshot:
    """A Job that may not make its pods."""
    run = live()
    there = jobs(run, **{role: 0})
    job = next(each for each in there if each["metadata"]["name"] == f"mnist-{role}-0")
    refused = [event(job, "FailedCreate", f"Error creating: {message}", 20)]
    rest = [each for each in PODS if f"-{role}-" not in each["metadata"]["name"]]
    return look(rest, said(*BEGUN[:2]), run, jobs=there, events=refused, **more)


def apart(**more: Any) -> Snapshot:
    """A chief that waits for its peers."""
    return look(log=said(("start", 60.0)), **more)


NO_POLICY = [each for each in look().parts["policies"] if each["metadata"]["name"] == "default-deny"]  # type: ignore[union-attr]
BAD_POLICY = [*NO_POLICY, {
    "metadata": {"name": "mnist", "namespace": "trainings"},
    "spec": {"podSelector": {"matchLabels": {"trainyard.dev/role": "worker"}}, "policyTypes": ["Ingress", "Egress"],
             "ingress": [{}], "egress": [{}]},
}]  # fmt: skip
GONE = {"metadata": {"name": "trainings-mnist-logs"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["worker9"]}]}]}}}}  # fmt: skip
UNBOUND = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
SICK = pod("worker", 1, "worker2", run=live(worker={"gpus": 1}))
SICK["status"]["containerStatuses"][0]["allocatedResourcesStatus"] = [
    {"name": GPU, "resources": [{"resourceID": "GPU-1", "health": "Unhealthy"}]}
]

OF_THE_CLUSTER: list[tuple[str, str, Callable[[], Snapshot]]] = [
    ("kubelet stopped", "node_not_ready", lambda: look(nodes=[*NODES[:2], node("worker2", ready=False)])),
    ("kubelet stopped, and its pod is deleted", "node_not_ready", lambda: look(
        [*REST, {**PODS[3], "metadata": {**PODS[3]["metadata"], "deletionTimestamp": ago(9)}}],
        nodes=[*NODES[:2], node("worker2", ready=False)])),
    ("node deleted", "node_not_ready", lambda: look(nodes=NODES[:2])),
    ("only place not ready", "node_not_ready",
     lambda: look([*REST, WAITS], nodes=[SMALL[0], node("worker1", ready=False)], everyone=SYSTEM + FULL[1:])),
    ("disk pressure", "node_pressure", lambda: look([*REST, WAITS], nodes=[SMALL[0], SMALL[1], node(
        "worker2", taints=[{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}])])),
    ("scheduler stopped", "scheduler_down", lambda: look(
        [*REST, {**WAITS, "status": {"phase": "Pending"}}], everyone=SYSTEM[1:])),
    ("scheduler hangs", "scheduler_down", lambda: look(
        [*REST, {**WAITS, "status": {"phase": "Pending"}}],
        leases=[{"metadata": {"name": "kube-scheduler"}, "spec": {"renewTime": ago(120)}}])),
    ("controller stopped", "controller_down", lambda: look([], "", live(20), jobs=[], everyone=SYSTEM[:3])),
    ("controller stopped under a run", "controller_down", lambda: on_job(
        "worker", 'failed calling webhook "mpod.kb.io": no endpoints available', everyone=SYSTEM[:3])),
    ("controller manager stopped", "controller_down", lambda: look(
        PODS[:2], jobs=jobs(live(), worker=0), everyone=[SYSTEM[0], *SYSTEM[2:]])),
    ("webhook", "webhook_down", lambda: on_job("worker", 'failed calling webhook "policy.example": refused')),
    ("DNS stopped", "dns_down", lambda: apart(everyone=[*SYSTEM[:2], SYSTEM[3]])),
    ("DNS not ready", "dns_down", lambda: apart(everyone=[
        *SYSTEM[:2], system("coredns-1", good=False, **{"k8s-app": "kube-dns"})])),
    ("policy gone", "policy_blocks", lambda: apart(policies=NO_POLICY)),
    ("policy cuts the ps", "policy_blocks", lambda: apart(policies=BAD_POLICY)),
    ("ps does not come", "peer_unreachable", lambda: look(log=said(("start", 90.0)))),
    ("image", "image_missing", lambda: pulls(NOT_FOUND)),
    ("registry stopped", "registry_down", lambda: pulls(DOWN)),
    ("registry's certificate", "registry_tls", lambda: pulls(TLS)),
    ("login", "registry_refused", lambda: pulls(LOGIN)),
    ("sandbox", "sandbox", lambda: look([*REST, mine := waiting("worker", 1)], events=[
        event(mine, "FailedCreatePodSandBox", "Failed to create pod sandbox: plugin type=calico failed")])),
    ("mount", "mount_failed", lambda: look([*REST, mine := waiting("worker", 1)], events=[
        event(mine, "FailedMount", "MountVolume.SetUp failed: mount.nfs: Connection timed out")])),
    ("a node that says nothing", "not_started", lambda: look([*REST, waiting("worker", 1)])),
    ("secret", "container_refused", lambda: look([*REST, waiting(
        "worker", 1, "CreateContainerConfigError", 'secret "x" not found')])),
    ("quota", "quota", lambda: on_job("worker", 'pods "mnist-worker-0-0-x" is forbidden: exceeded quota: small, '
                                      "requested: requests.cpu=2, used: requests.cpu=3, limited: requests.cpu=4")),
    ("root", "pod_security", lambda: on_job(
        "worker", 'violates PodSecurity "restricted:latest": runAsNonRoot != true')),
    ("limit range", "pod_refused", lambda: on_job("worker", 'pods "x" is forbidden: maximum cpu usage per Pod is 1')),
    ("claim without class", "claim_unbound", lambda: look(
        [unplaced("chief", 0, UNBOUND), *PODS[1:]], "", claims=claims("Pending", volumeName=""))),
    ("no claim", "claim_unbound", lambda: look(
        [unplaced("chief", 0, 'persistentvolumeclaim "mnist-logs" not found'), *PODS[1:]], "", claims=[])),
    ("node of the volume gone", "volume_node", lambda: look([unplaced("chief"), *PODS[1:]], "", volumes=[GONE])),
    ("skew", "gpu_skew", lambda: look([*REST, gpu_pod(1)], nodes=gpu_nodes(
        node("worker1", gpus=2, healthy=0, labels={"trainyard.dev/gpu": "skew"})))),
    ("unhealthy, waiting", "gpu_unhealthy", lambda: look([*REST, gpu_pod(1)], nodes=gpu_nodes(
        node("worker1", gpus=2, healthy=0)))),
    ("unhealthy, running", "gpu_unhealthy", lambda: look([*REST, SICK])),
    ("no plugin", "gpu_missing", lambda: look([*REST, gpu_pod(1)], nodes=gpu_nodes(
        node("worker1", labels={"trainyard.dev/gpu": "ready"})))),
    ("no GPUs", "gpu_missing", lambda: look([*REST, gpu_pod(1)])),
    ("GPUs held", "held_by", lambda: look(
        [*REST, gpu_pod(1)], nodes=gpu_nodes(node("worker1", gpus=2)),
        everyone=[*SYSTEM, other("cnn", "worker-0", gpu="1"), other("cnn", "worker-1", gpu="1")])),
    ("cordon", "cordoned", lambda: look([*REST, WAITS], nodes=[*SMALL[:2], node("worker2", unschedulable=True)])),
    ("taint", "tainted", lambda: look([*REST, WAITS], nodes=[SMALL[0], SMALL[1], node(
        "worker2", taints=[{"key": "mine", "effect": "NoSchedule"}])])),
    ("labels", "selector", lambda: look([*REST, unplaced("worker", 1, spec={"nodeSelector": {"disk": "ssd"}})])),
    ("request too large", "never_fits", lambda: look([*REST, NEVER])),
    ("run too large", "never_fits", lambda: look(
        [*REST, WAITS], nodes=[SMALL[0], node("worker1", "1"), node("worker2", "400m")],
        everyone=[*SYSTEM, other("mnist", "worker-0", cpu="900m"), other("mnist", "ps-0", "worker2", cpu="300m")])),
    ("CPU held", "held_by", lambda: look([*REST, WAITS], everyone=[*SYSTEM, *FULL])),
    ("no reason known", "unplaced", lambda: look([*REST, WAITS])),
]  # fmt: skip
