"""A healthy cluster, and what a run of its site renders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.unmanaged.objects import binding, keeper, node, obj, owned, pod, role, static
from trainyard.unmanaged.foreign import World
from trainyard.unmanaged.rendered import Rendered, kept_of
from trainyard.unmanaged.unmanaged_objects import Site, Snapshot, cluster_findings

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


PRIVILEGED = {"containers": [{"name": "x", "securityContext": {"privileged": True}}]}
PROXY = keeper("DaemonSet", "kube-proxy", hostNetwork=True, **PRIVILEGED)
AGENT = keeper("Deployment", "agent", hostNetwork=True)
REPLICAS = owned(keeper("ReplicaSet", "agent-5d", hostNetwork=True), AGENT)
OWN = [
    obj("Service", "console", "trainyard-console", spec={"type": "NodePort", "ports": [{"nodePort": 30443}]}),
    obj("Service", "any", "trainyard-console", spec={"type": "NodePort", "ports": [{"port": 80}]}),
    PROXY,
    AGENT,
    obj("ValidatingWebhookConfiguration", "jobset", webhooks=[
        {"clientConfig": {"service": {"namespace": "jobset-system", "name": "hooks"}}}
    ]),
    obj("APIService", "v1beta1.metrics.k8s.io", spec={"service": {"namespace": "kube-system", "name": "metrics"}}),
    role("jobset", "* /secrets", "update,patch admissionregistration.k8s.io/validatingwebhookconfigurations"),
    binding("jobset", "ServiceAccount jobset-system/jobset", role="ClusterRole jobset"),
]  # fmt: skip
"""Rendered by a run."""
RENDERED = Rendered(frozenset(["network", "workloads"]), kept_of(OWN))

SITE = Site(["cp1", "worker1", "worker2"], ["cp1"], DOCUMENTS, ["kube-system", "jobset-system"], RENDERED)
HEALTHY = Snapshot(
    nodes=[
        node("cp1", ("node-role.kubernetes.io/control-plane", "NoSchedule")),
        node("worker1"),
        # The controller manager's, while a kubelet is silent.
        node("worker2", ("node.kubernetes.io/unreachable", "NoExecute")),
    ],
    world=World(
        bindings=[
            *(each for each in OWN if each["kind"] == "ClusterRoleBinding"),
            binding("cluster-admin", "Group system:masters"),
            binding("kubeadm:cluster-admins", "Group kubeadm:cluster-admins"),
            binding("system:coredns", "ServiceAccount kube-system/coredns", role="ClusterRole system:coredns"),
            binding("viewer", "User eve", role="ClusterRole view"),
            binding("nobody", role="ClusterRole cluster-admin"),
        ],
        roles=[
            *(each for each in OWN if each["kind"] == "ClusterRole"),
            role("cluster-admin", "* */*"),
            role("view", "get,list,watch /pods,services"),
            role("system:coredns", "list,watch /services"),
        ],
        objects=[
            *(each for each in OWN if each["kind"] not in ("ClusterRole", "ClusterRoleBinding")),
            obj("Service", "kubernetes", "default", spec={"type": "ClusterIP", "ports": [{"port": 443}]}),
            REPLICAS,
            static("etcd-cp1", hostNetwork=True, volumes=[{"hostPath": {"path": "/var/lib/etcd"}}]),
            pod("kube-proxy-a1", PROXY, hostNetwork=True, **PRIVILEGED),
            pod("agent-5d-x", REPLICAS, hostNetwork=True),
            pod("coredns-1", containers=[{"name": "coredns"}]),
            pod("mnist-ps-0", namespace="trainings", volumes=[{"persistentVolumeClaim": {"claimName": "data"}}]),
            obj("APIService", "v1.apps", spec={"group": "apps"}),
        ],
    ),
    settings={"ClusterConfiguration": CLUSTER_CONFIGURATION, "KubeletConfiguration": KUBELET_CONFIGURATION},
)


def seen(*more: Any) -> Snapshot:
    """The healthy cluster with these objects, each in the place of one of its kind and name."""
    taken = {(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in more}
    kept = {
        name: [it for it in rows if (it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"]) not in taken]
        for name, rows in vars(HEALTHY.world).items()
    }
    for each in more:
        kind = (
            "bindings" if each["kind"].endswith("Binding") else "roles" if each["kind"].endswith("Role") else "objects"
        )
        kept[kind].append(each)
    return replace(HEALTHY, world=World(**kept))


def found(*more: Any) -> list[tuple[str, str]]:
    return [(each.subject, each.before) for each in cluster_findings(seen(*more), SITE)]
