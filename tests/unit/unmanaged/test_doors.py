"""Doors that no run renders. Every object here has the field manager `trainyard`: any client may choose it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.unit.unmanaged.clusters import AGENT, OWN, PRIVILEGED, PROXY, REPLICAS, found
from tests.unit.unmanaged.objects import keeper, obj, owned, pod, static
from trainyard.kube.api import describe

CP1 = obj("Node", "cp1")


def changed(one: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {**copy.deepcopy(one), **parts}


def adds(*capabilities: str) -> dict[str, Any]:
    return {"containers": [{"name": "x", "securityContext": {"capabilities": {"add": list(capabilities)}}}]}


PORTS = [{"name": "x", "ports": [{"containerPort": 443, "hostPort": 443}, {"containerPort": 80}]}]
OUTSIDE = {"service": {"namespace": "web", "name": "spy"}}
SPY = "Service web/spy"
FORGED = owned(pod("x", namespace="web", **PRIVILEGED), PROXY)
GONE = owned(pod("x", **PRIVILEGED), obj("DaemonSet", "kube-proxy", "other"))
NODES = pod("kube-scheduler-cp1", CP1, hostNetwork=True)


@pytest.mark.parametrize(
    ("one", "subject", "before"),
    [
        (obj("Service", "s", "web", spec={"type": "LoadBalancer", "ports": [{"nodePort": 31000}]}),
         "Service web/s", "LoadBalancer 31000"),
        (obj("Service", "s", "web", spec={"type": "ClusterIP", "externalIPs": ["10.0.0.9"]}),
         "Service web/s", "address 10.0.0.9"),
        (changed(OWN[0], spec={"type": "NodePort", "ports": [{"nodePort": 30443}, {"nodePort": 30000}]}),
         "Service trainyard-console/console", "NodePort 30000"),
        (pod("m", namespace="web", hostPID=True), "Pod web/m", "sees its processes"),
        (pod("m", namespace="web", volumes=[{"hostPath": {"path": "/"}}]), "Pod web/m", "mounts its folders"),
        (pod("m", namespace="web", ephemeralContainers=PRIVILEGED["containers"]), "Pod web/m", "privileged"),
        (pod("m", namespace="web", **adds("SYS_ADMIN", "NET_RAW", "ALL")), "Pod web/m", "adds ALL, adds SYS_ADMIN"),
        (pod("m", namespace="web", initContainers=adds("all", "CAP_BPF")["containers"]), "Pod web/m",
         "adds CAP_BPF, adds all"),
        (keeper("Deployment", "m", "web", **adds("SYS_MODULE")), "Deployment web/m", "adds SYS_MODULE"),
        (keeper("Deployment", "agent", hostNetwork=True, **adds("NET_ADMIN")), "Deployment kube-system/agent",
         "adds NET_ADMIN"),
        (pod("m", namespace="web", containers=PORTS), "Pod web/m", "port 443 of its node"),
        (keeper("DaemonSet", "miner", "web", **PRIVILEGED), "DaemonSet web/miner", "privileged"),
        (keeper("Deployment", "agent", hostNetwork=True, hostPID=True), "Deployment kube-system/agent",
         "sees its processes"),
        (obj("CronJob", "n", "web", spec={"jobTemplate": {"spec": {"template": {"spec": PRIVILEGED}}}}),
         "CronJob web/n", "privileged"),
        # It says that the site's own keeps it, from another namespace, or that one does which is not there.
        (FORGED, "Pod web/x", "privileged"),
        (GONE, "Pod kube-system/x", "privileged"),
        # A kubelet would mark it.
        (NODES, "Pod kube-system/kube-scheduler-cp1", "shares its network"),
        (static("kube-apiserver-worker1", hostNetwork=True), "Pod kube-system/kube-apiserver-worker1",
         "shares its network"),
        (obj("MutatingWebhookConfiguration", "spy", webhooks=[{"clientConfig": {"url": "https://a.example"}}]),
         "MutatingWebhookConfiguration spy", "calls https://a.example"),
        (changed(OWN[4], webhooks=[{"clientConfig": OUTSIDE}]), "ValidatingWebhookConfiguration jobset",
         f"calls {SPY}"),
        (changed(OWN[5], spec=OUTSIDE), "APIService v1beta1.metrics.k8s.io", f"answered by {SPY}"),
        (obj("MutatingAdmissionPolicy", "spy"), "MutatingAdmissionPolicy spy", "changes objects"),
    ],
)  # fmt: skip
def test_a_door(one: dict[str, Any], subject: str, before: str) -> None:
    assert found(one) == [(subject, before)]


@pytest.mark.parametrize(
    "one",
    [
        changed(OWN[1], spec={"type": "NodePort", "ports": [{"nodePort": 31234}]}),
        {**pod("m", namespace="web", hostPID=True), "status": {"phase": "Succeeded"}},
        obj("Service", "s", "web", spec={"type": "ClusterIP", "ports": [{"port": 80}]}),
        owned(pod("p", hostNetwork=True), REPLICAS),
        owned(pod("p", hostNetwork=True, containers=PORTS), REPLICAS),
        pod("m", namespace="web", **adds("NET_BIND_SERVICE", "CHOWN")),
        pod(
            "m", namespace="web", containers=[{"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 0}]}]
        ),
        {**keeper("Job", "j", "web", **PRIVILEGED), "status": {"conditions": [{"type": "Complete", "status": "True"}]}},
    ],
)
def test_no_door(one: dict[str, Any]) -> None:
    assert found(one) == []


@pytest.mark.parametrize(
    ("one", "before"),
    [
        (obj("Service", "s", "kube-system", spec={"type": "NodePort", "ports": [{"nodePort": 31000}]}),
         "NodePort 31000"),
        (obj("MutatingWebhookConfiguration", "spy", webhooks=[{"clientConfig": {"url": "https://a.example"}}]),
         "calls https://a.example"),
        (obj("ValidatingWebhookConfiguration", "spy", webhooks=[{"clientConfig": {"url": "https://a.example"}}]),
         "calls https://a.example"),
        (obj("MutatingAdmissionPolicy", "spy"), "changes objects"),
        (obj("APIService", "v1.spy", spec=OUTSIDE), f"answered by {SPY}"),
        (keeper("DaemonSet", "spy", hostNetwork=True), "shares its network"),
        (keeper("ReplicaSet", "spy", hostNetwork=True), "shares its network"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("owner", [PROXY, OWN[0], OWN[4], OWN[5]], ids=lambda each: str(each["kind"]))
def test_an_owner_hides_no_door(one: dict[str, Any], before: str, owner: dict[str, Any]) -> None:
    owner = changed(owner)
    owner["metadata"] |= {"namespace": one["metadata"].get("namespace"), "name": "other", "uid": "uid-other"}
    assert dict(found(owned(changed(one), owner), owner))[describe(one)] == before


@pytest.mark.parametrize("one", [pod("m", namespace="web", **PRIVILEGED), keeper("Job", "m", "web", **PRIVILEGED)])
def test_a_deletion_that_waits_hides_no_door(one: dict[str, Any]) -> None:
    one = changed(one)
    one["metadata"] |= {"deletionTimestamp": "2058-08-04T12:00:00Z", "deletionGracePeriodSeconds": 10**9}
    assert found(one) == [(describe(one), "privileged")]


def test_an_owner_is_one_that_makes_such_objects() -> None:
    assert found(owned(pod("p", hostNetwork=True), AGENT)) == [("Pod kube-system/p", "shares its network")]


def test_pods_of_one_owner_are_one_finding() -> None:
    miner = keeper("DaemonSet", "miner", "web", **PRIVILEGED)
    pods = [owned(pod(name, namespace="web", **PRIVILEGED), miner) for name in ("miner-1", "miner-2")]
    assert found(miner, *pods) == [("DaemonSet web/miner", "privileged")]


def volume(path: str, kind: str = "hostPath") -> dict[str, Any]:
    return obj("PersistentVolume", "trainings-mnist-data", spec={kind: {"path": path}})


@pytest.mark.parametrize("kind", ["hostPath", "local"])
@pytest.mark.parametrize("path", ["/", "//", "/etc", "/etc/", "//etc/kubernetes", "/var", "/var/./lib", "/root/.ssh"])
def test_a_volume_of_a_system_folder_is_a_door(path: str, kind: str) -> None:
    one = volume(path, kind)
    one["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": "mnist"}
    assert found(one) == [("PersistentVolume trainings-mnist-data", f"is {path} of nodes")]


@pytest.mark.parametrize("path", ["/srv/data", "/var/lib/trainyard/logs", "/etcetera", "/mnt/etc", "/mnt/efs/runs"])
def test_a_volume_of_data_is_none(path: str) -> None:
    assert found(volume(path), volume(path, "local"), obj("PersistentVolume", "v", spec={"nfs": {"path": "/"}})) == []
