"""Objects of a healthy cluster, as its API server returns them, cut to what the rules look at."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.trainyard.drift.cluster import Site, Snapshot

RBAC = "rbac.authorization.k8s.io"
DOCUMENTS: list[dict[str, Any]] = [
    {"kind": "InitConfiguration", "apiVersion": "kubeadm.k8s.io/v1beta4"},
    {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": "v1.36.3",
        "controlPlaneEndpoint": "10.84.0.10:6443",
        "networking": {"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/16", "dnsDomain": "cluster.local"},
        "etcd": {"local": {"dataDir": "/var/lib/etcd", "imageTag": "3.6.14-0"}},
        "dns": {"disabled": True},
        "proxy": {"disabled": True},
        "apiServer": {"certSANs": [], "extraArgs": [{"name": "profiling", "value": "false"}]},
    },
    {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "systemd",
        "failCgroupV1": False,
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "serializeImagePulls": False,
        "maxParallelImagePulls": 4,
        "serverTLSBootstrap": False,
        "evictionHard": {"memory.available": "100Mi"},
        "syncFrequency": "90s",
    },
]

# As kubeadm 1.36.3 writes them for the documents above.
CLUSTER_CONFIGURATION = """\
apiServer:
  extraArgs:
  - name: profiling
    value: "false"
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: kubernetes
controlPlaneEndpoint: 10.84.0.10:6443
dns:
  disabled: true
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
    imageTag: 3.6.14-0
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/16
proxy:
  disabled: true
"""
KUBELET_CONFIGURATION = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
crashLoopBackOff: {}
evictionHard:
  memory.available: 100Mi
failCgroupV1: false
healthzBindAddress: 127.0.0.1
healthzPort: 10248
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
  verbosity: 0
maxParallelImagePulls: 4
memorySwap: {}
rotateCertificates: true
serializeImagePulls: false
staticPodPath: /etc/kubernetes/manifests
syncFrequency: 1m30s
"""


def obj(kind: str, name: str, namespace: str = "", *, by: str = "trainyard", **parts: Any) -> dict[str, Any]:
    """An object that a field manager has applied."""
    place = {"namespace": namespace} if namespace else {}
    managed = [{"manager": by, "operation": "Apply"}, {"manager": "kube-controller-manager", "operation": "Update"}]
    meta = {"name": name, "uid": f"uid-{kind}-{name}", "managedFields": managed, **place}
    return {"kind": kind, "metadata": meta, **parts}


def pod(name: str, owner: dict[str, Any] | None, **spec: Any) -> dict[str, Any]:
    owners = (
        [
            {
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
        if owner
        else []
    )
    made = obj("Pod", name, "kube-system", by="kube-controller-manager", spec=spec, status={"phase": "Running"})
    made["metadata"]["ownerReferences"] = owners
    return made


def node(name: str, *taints: tuple[str, str], **spec: Any) -> dict[str, Any]:
    told = [{"key": key, "effect": effect} for key, effect in taints]
    return obj("Node", name, by="kubelet", spec={**spec, **({"taints": told} if told else {})})


def binding(
    name: str, *subjects: tuple[str, str, str], by: str, kind: str = "ClusterRoleBinding", role: str = "cluster-admin"
) -> dict[str, Any]:
    told = [
        {"kind": kind_, "name": name_, **({"namespace": place} if place else {})} for kind_, name_, place in subjects
    ]
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return obj(kind, name, "web" if kind == "RoleBinding" else "", by=by, roleRef=ref, subjects=told)


PRIVILEGED = {"containers": [{"name": "x", "securityContext": {"privileged": True}}]}
PROXY = obj("DaemonSet", "kube-proxy", "kube-system")
DEPLOYMENT = obj("Deployment", "agent", "kube-system")
REPLICAS = obj("ReplicaSet", "agent-5d", "kube-system", by="kube-controller-manager")
REPLICAS["metadata"]["ownerReferences"] = [
    {"kind": "Deployment", "name": "agent", "uid": DEPLOYMENT["metadata"]["uid"], "controller": True}
]
CP1 = obj("Node", "cp1", by="kubelet")

SITE = Site(["cp1", "worker1", "worker2"], ["cp1"], DOCUMENTS)
HEALTHY = Snapshot(
    nodes=[
        node("cp1", ("node-role.kubernetes.io/control-plane", "NoSchedule")),
        node("worker1"),
        # The controller manager's, while a kubelet is silent.
        node("worker2", ("node.kubernetes.io/unreachable", "NoExecute")),
    ],
    services=[
        obj(
            "Service",
            "kubernetes",
            "default",
            by="kube-apiserver",
            spec={"type": "ClusterIP", "ports": [{"port": 443}]},
        ),
        obj("Service", "console", "trainyard-console", spec={"type": "NodePort", "ports": [{"nodePort": 30443}]}),
    ],
    bindings=[
        binding("cluster-admin", ("Group", "system:masters", ""), by="kube-apiserver"),
        binding("kubeadm:cluster-admins", ("Group", "kubeadm:cluster-admins", ""), by="kubeadm"),
        binding("system:coredns", ("ServiceAccount", "coredns", "kube-system"), by="kubectl", role="system:coredns"),
        binding("ours", ("User", "alice", ""), by="trainyard"),
    ],
    pods=[
        pod("etcd-cp1", CP1, hostNetwork=True, volumes=[{"hostPath": {"path": "/var/lib/etcd"}}]),
        pod("kube-proxy-a1", PROXY, hostNetwork=True, **PRIVILEGED),
        pod("agent-5d-x", REPLICAS, hostNetwork=True),
        pod("coredns-1", None, containers=[{"name": "coredns"}]),
    ],
    owners=[PROXY, DEPLOYMENT, REPLICAS],
    settings={"ClusterConfiguration": CLUSTER_CONFIGURATION, "KubeletConfiguration": KUBELET_CONFIGURATION},
)
