"""Drift of the cluster, of the mirror and of the controller: its injection, and its removal if that is manual."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from drift_kinds import Kind
from drift_lab import kubectl, on
from drift_shapes import hostvars
from stand import Stand

SYSTEM = "k --namespace=kube-system"
TAINT = "node-role.kubernetes.io/control-plane"
KUBELETS = (
    f"{SYSTEM} get configmap kubelet-config --output=yaml | sed 's/syncFrequency: {{old}}/syncFrequency: {{new}}/'"
    f" | {SYSTEM} replace --field-manager={{who}} --filename=- > /dev/null"
)
TAGS = "/var/lib/docker-registry/docker/registry/v2/repositories"
LINKS = f"cd {TAGS}; find * -path '*/_manifests/tags/*/current/link' | sort | head -2"
PUSH_LIMIT = 120.0
OTHER_KEY = """
cd /etc/ssh; mkdir -p /root/keys; cp --archive ssh_host_* /root/keys/
rm ssh_host_*; ssh-keygen -A > /dev/null
{restart}
"""
OWN_KEY = """
cd /etc/ssh; rm ssh_host_*; cp --archive /root/keys/* .; rm -r /root/keys
{restart}
"""
# An existing connection would not notice another key.
RESTART = "systemctl restart ssh; pkill -x sshd-session || true"


def readable(stand: Stand) -> None:
    (stand.state / "kubeconfig").chmod(0o644)


def deleted(stand: Stand) -> None:
    (stand.state / "kubeconfig").unlink()


def pushed_over(stand: Stand) -> None:
    """Push one image of the mirror under the tag of another, as anyone with the site's certificate could."""
    own, other = (
        ":".join(link.removesuffix("/current/link").split("/_manifests/tags/"))
        for link in stand.on_node("mirror1", "sh", "-c", LINKS).split()
    )
    registry = f"docker://{hostvars(stand.inventory)['mirror1']['ansible_host']}:5000"
    with tempfile.TemporaryDirectory() as folder:
        for name, to in (("ca.crt", "ca.crt"), ("push.crt", "client.cert"), ("push.key", "client.key")):
            shutil.copy(stand.state / "mirror" / name, Path(folder, to))
        argv = [
            "skopeo",
            "--insecure-policy",
            "copy",
            "--quiet",
            f"--src-cert-dir={folder}",
            f"--dest-cert-dir={folder}",
        ]
        subprocess.run([*argv, f"{registry}/{other}", f"{registry}/{own}"], check=True, timeout=PUSH_LIMIT)


KUBECONFIG = "kubeconfig on the controller deleted or readable by others"
KEPT = ["controller values of copy, not shown"]

OBJECTS = [
    Kind("NetworkPolicy deleted", ["cluster NetworkPolicy trainings/default-deny"],
         kubectl("k --namespace=trainings delete networkpolicy default-deny > /dev/null")),
    Kind("Pod Security label removed", ["cluster Namespace trainings"],
         kubectl("k label namespace trainings pod-security.kubernetes.io/enforce- > /dev/null")),
    Kind("Calico's DaemonSet edited", ["cluster DaemonSet kube-system/calico-node"],
         kubectl(f"""{SYSTEM} patch daemonset calico-node --type=merge --patch='{{"spec": {{"updateStrategy":"""
                 """ {"rollingUpdate": {"maxUnavailable": 2}}}}' > /dev/null""")),
    Kind("JobSet's controller scaled to 0", ["cluster Deployment jobset-system/jobset-controller-manager"],
         kubectl("k --namespace=jobset-system scale deployment jobset-controller-manager --replicas=0 > /dev/null")),
    Kind("CoreDNS's image changed", ["cluster Deployment kube-system/coredns"],
         kubectl(f"{SYSTEM} set image deployment/coredns coredns=registry.k8s.io/coredns/coredns:v0.0.1 > /dev/null")),
    Kind("kube-proxy's mode changed", ["cluster ConfigMap kube-system/kube-proxy"],
         kubectl(f"{SYSTEM} get configmap kube-proxy --output=yaml | sed 's/mode: [a-z]*/mode: ipvs/'"
                 f" | {SYSTEM} replace --filename=- > /dev/null")),
    Kind("control plane taint removed", [f"cluster taint {TAINT}:NoSchedule of node cp1"],
         kubectl(f"k taint node cp1 {TAINT}:NoSchedule- > /dev/null")),
    Kind(KUBECONFIG, KEPT, readable),
]  # fmt: skip

GONE = [Kind(KUBECONFIG, KEPT, deleted)]

LAPTOP = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "laptop"}}'
# It pulls no image, because no node has this label.
MINER = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "miner", "namespace": "default"}, "spec":'
    ' {"nodeSelector": {"trainyard.dev/none": "true"}, "containers":'
    ' [{"name": "miner", "image": "registry.k8s.io/pause:3.10", "securityContext": {"privileged": true}}]}}'
)
# It is called for no existing object, and its failure is ignored.
SPY = (
    '{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata":'
    ' {"name": "spy"}, "webhooks": [{"name": "spy.example.org", "sideEffects": "None", "failurePolicy": "Ignore",'
    ' "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://spy.example.org/"},'
    ' "rules": [{"apiGroups": ["example.org"], "apiVersions": ["v1"], "operations": ["CREATE"],'
    ' "resources": ["things"]}]}]}'
)
BY_HAND = [
    Kind("kubelet ConfigMap edited", ["cluster ConfigMap kube-system/kubelet-config syncFrequency"],
         kubectl(KUBELETS.format(old="10s", new="44s", who="somebody")),
         kubectl(KUBELETS.format(old="44s", new="10s", who="somebody")),
         follows=["* ConfigMap kube-system/kubelet-config"]),
    Kind("node cordoned by hand", ["cluster cordon of node worker2"],
         kubectl("k cordon worker2 > /dev/null"), kubectl("k uncordon worker2 > /dev/null")),
    Kind("host unreachable, or with another host key", ["worker1 connection"],
         on("worker1", OTHER_KEY.format(restart=RESTART)), on("worker1", OWN_KEY.format(restart=RESTART))),
    Kind("node unknown to the inventory", ["cluster Node laptop"],
         kubectl(f"echo '{LAPTOP}' | k create --filename=- > /dev/null"), kubectl("k delete node laptop > /dev/null")),
    Kind("foreign cluster-admin binding or NodePort",
         ["cluster ClusterRoleBinding eve", "cluster Service default/shop"],
         kubectl("k create clusterrolebinding eve --clusterrole=cluster-admin --user=eve > /dev/null\n"
                 "k --namespace=default create service nodeport shop --tcp=80 > /dev/null"),
         kubectl("k delete clusterrolebinding eve > /dev/null; k --namespace=default delete service shop > /dev/null")),
    # Any client may choose the name of our field manager.
    Kind("rights by a role of its own, with our field manager", ["cluster ClusterRoleBinding mallory"],
         kubectl("k create clusterrole mallory --verb='*' --resource='*.*' --field-manager=trainyard > /dev/null\n"
                 "k create clusterrolebinding mallory --clusterrole=mallory --user=mallory"
                 " --field-manager=trainyard > /dev/null"),
         kubectl("k delete clusterrolebinding mallory > /dev/null; k delete clusterrole mallory > /dev/null")),
    Kind("privileged pod in a namespace of users, with our field manager", ["cluster Pod default/miner"],
         kubectl(f"echo '{MINER}' | k create --field-manager=trainyard --filename=- > /dev/null"),
         kubectl("k --namespace=default delete pod miner --wait=false --grace-period=0 > /dev/null")),
    Kind("webhook of a server of its own, with our field manager", ["cluster MutatingWebhookConfiguration spy"],
         kubectl(f"echo '{SPY}' | k create --field-manager=trainyard --filename=- > /dev/null"),
         kubectl("k delete mutatingwebhookconfiguration spy > /dev/null")),
    Kind("image of the mirror changed under its tag", ["mirror1 image *"],
         # A run of site.yml pushes the original image again.
         pushed_over, settle=True),
]  # fmt: skip

ETCDCTL = (
    f"{SYSTEM} exec etcd-cp1 -- etcdctl --cacert=/etc/kubernetes/pki/etcd/ca.crt"
    " --cert=/etc/kubernetes/pki/etcd/peer.crt --key=/etc/kubernetes/pki/etcd/peer.key"
)
REMOVED = f"""
member=$({ETCDCTL} member list | grep ' cp3,' | cut -d, -f1)
{ETCDCTL} member remove "$member" > /dev/null
"""
MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"


def taken_back(stand: Stand) -> None:
    """Add the member again as etcd's documentation describes: without its old data, and announced to the others."""
    stand.on_node("cp3", "sh", "-ec", f"mv {MANIFEST} /root/etcd.yaml; sleep 5; rm -r /var/lib/etcd/member")
    address = hostvars(stand.inventory)["cp3"]["ansible_host"]
    kubectl(f"{ETCDCTL} member add cp3 --peer-urls=https://{address}:2380 > /dev/null")(stand)
    # After repeated failures it is only retried every five minutes, unless the kubelet restarts.
    stand.on_node("cp3", "sh", "-ec", f"mv /root/etcd.yaml {MANIFEST}; systemctl restart kubelet")


MEMBER = [
    # Its host is also refused, because its API server has no etcd.
    Kind("etcd member missing", ["cp1 etcd member cp3", "cp3 refusal*"], kubectl(REMOVED), taken_back),
]  # fmt: skip
"""One of three members: the others keep their quorum."""
