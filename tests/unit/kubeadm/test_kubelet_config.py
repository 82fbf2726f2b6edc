"""A node's kubelet configuration against the cluster's, both as kubeadm 1.36.3 writes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trainyard.host import resolver, units
from trainyard.kubeadm import kubelet_files
from trainyard.kubeadm.kubeadm_program import Host
from trainyard.kubeadm.kubelet_files import NAME, KubeletSeen, is_stale, make_plan, wanted_text, writer_of

SOCKET = "unix:///run/containerd/containerd.sock"
CLUSTER = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
clusterDNS:
- 10.96.0.10
containerRuntimeEndpoint: ""
evictionHard:
  memory.available: 100Mi
kind: KubeletConfiguration
maxParallelImagePulls: 4
"""
NODE = CLUSTER.replace('Endpoint: ""', f"Endpoint: {SOCKET}")
RESOLVED_FIELD = "resolvConf: /run/systemd/resolve/resolv.conf\n"
RESOLVED = NODE + RESOLVED_FIELD


def seen(text: str = NODE, **fields: Any) -> KubeletSeen:
    return KubeletSeen(**{"text": text, "wanted": CLUSTER, "writer": "kubeadm", **fields})


@pytest.mark.parametrize(
    ("state", "steps"),
    [
        (seen(), []),
        # An older kubeadm's own words, and a text without an end.
        (seen(NODE.replace(SOCKET, f'"{SOCKET}"').rstrip()), []),
        (seen("---\n" + NODE), []),
        (seen(CLUSTER), []),
        (seen(wanted=""), []),
        (seen(text="", wanted=""), []),
        (seen(writer=""), []),
        (seen(stale=True), ["Restart kubelet.service"]),
        (seen(NODE.replace("100Mi", "1Mi")), ["Write FILE", "Restart kubelet.service"]),
        (seen(NODE.replace("enabled: false", "enabled: true")), ["Write FILE", "Restart kubelet.service"]),
        (seen(NODE + "maxPods: 5\n"), ["Write FILE", "Restart kubelet.service"]),
        (seen(NODE + "resolvConf: /tmp/resolv.conf\n"), ["Write FILE", "Restart kubelet.service"]),
        (seen(NODE.replace("/run/containerd", "/run/evil")), ["Write FILE", "Restart kubelet.service"]),
        (seen("nonsense"), ["Write FILE", "Restart kubelet.service"]),
    ],
)
def test_plan(state: KubeletSeen, steps: list[str], tmp_path: Path) -> None:
    host = Host(kubelet_config=str(tmp_path / "config.yaml"))
    plan, findings = make_plan(state, SOCKET, host)
    assert [step.what.replace(host.kubelet_config, "FILE") for step in plan.steps] == steps
    assert not findings
    assert not steps or plan.diff()["before"] != plan.diff()["after"]


@pytest.mark.parametrize("text", [NODE + "maxPods: 5\n", RESOLVED + "maxPods: 5\n", ""])
def test_the_node_gets_the_clusters(text: str, tmp_path: Path) -> None:
    host = Host(kubelet_config=str(tmp_path / "config.yaml"))
    file = resolver.RESOLVED if text.startswith(RESOLVED) else resolver.DEFAULT
    plan, _ = make_plan(seen(text or "x"), SOCKET, host, file)
    plan.steps[0].act()
    written = (tmp_path / "config.yaml").read_text()
    assert written == (RESOLVED if text.startswith(RESOLVED) else NODE)
    assert os.stat(host.kubelet_config).st_mode & 0o777 == 0o600
    assert not make_plan(seen(written), SOCKET, host, file)[0].changed


@pytest.mark.parametrize(
    ("own", "cluster", "file", "field"),
    [
        # As kubeadm left it on a cluster of hosts without systemd-resolved.
        (NODE, CLUSTER, resolver.DEFAULT, None),
        # The first control plane host has systemd-resolved: a worker without it, and one with it.
        (RESOLVED, CLUSTER + RESOLVED_FIELD, resolver.DEFAULT, "/etc/resolv.conf"),
        (RESOLVED, CLUSTER + RESOLVED_FIELD, resolver.RESOLVED, resolver.RESOLVED),
        # The reverse.
        (NODE, CLUSTER, resolver.RESOLVED, resolver.RESOLVED),
        (RESOLVED, CLUSTER, resolver.RESOLVED, resolver.RESOLVED),
        (NODE, CLUSTER, "/etc/kubernetes/resolv.conf", "/etc/kubernetes/resolv.conf"),
        (NODE + "resolvConf: /etc/resolv.conf\n", CLUSTER + RESOLVED_FIELD, resolver.DEFAULT, "/etc/resolv.conf"),
    ],
)
def test_each_node_has_a_resolver_file_of_its_own(own: str, cluster: str, file: str, field: str | None) -> None:
    text = wanted_text(cluster, own, SOCKET, file)
    assert [line for line in text.splitlines() if line.startswith("resolvConf")] == (
        [f"resolvConf: {field}"] if field else []
    )
    # Written once, it stays.
    assert wanted_text(cluster, text, SOCKET, file) == text


@pytest.mark.parametrize(
    ("text", "stale", "told"),
    [(NODE, True, True), (NODE + "maxPods: 5\n", False, True), (NODE, False, False)],
)
def test_no_node_follows_a_stranger(text: str, stale: bool, told: bool) -> None:
    """One that follows already is no finding: that the ConfigMap is another than the inventory's is the cluster's."""
    plan, findings = make_plan(seen(text, writer="kubectl-edit", stale=stale), SOCKET, Host())
    assert not plan.changed
    assert [(each.subject, each.before) for each in findings] == ([(NAME, "written by kubectl-edit")] if told else [])


def managed(*entries: tuple[str, str]) -> dict[str, Any]:
    fields = [{"manager": who, "fieldsV1": {what: {"f:kubelet": {}}}} for who, what in entries]
    return {"metadata": {"managedFields": fields}}


@pytest.mark.parametrize(
    ("found", "writer"),
    [
        (managed(("kubeadm", "f:data")), "kubeadm"),
        (managed(("kubeadm", "f:metadata"), ("kubectl-edit", "f:data")), "kubectl-edit"),
        (managed(), ""),
        ({}, ""),
    ],
)
def test_who_wrote_it(found: dict[str, Any], writer: str) -> None:
    assert writer_of(found) == writer


@pytest.mark.parametrize(
    ("active", "started", "written", "stale"),
    [
        ("active", 100, 90, False),
        ("active", 100, 110, True),
        ("inactive", 0, 110, False),
        ("activating", 0, 110, False),
    ],
)
def test_a_configuration_newer_than_the_process(
    active: str, started: int, written: int, stale: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks stand at 200 s and 1200 s."""
    path = tmp_path / "config.yaml"
    path.write_text("")
    # A mode that is set afterwards changes the inode, and not the text.
    os.utime(path, (1000 + written, 1000 + written))
    properties = {"ActiveState": active, "ExecMainStartTimestampMonotonic": str(started * 1_000_000)}
    monkeypatch.setattr(kubelet_files, "properties_of", lambda *_: properties)
    monkeypatch.setattr(units.time, "monotonic", lambda: 200.0)
    monkeypatch.setattr(units.time, "time", lambda: 1200.0)
    assert is_stale(str(path)) is stale


OPEN = {
    "authentication": "authentication:\n  anonymous:\n    enabled: true\n",
    "authorization": "authorization:\n  mode: AlwaysAllow\n",
    "readOnlyPort": "readOnlyPort: 10255\n",
    "staticPodPath": "staticPodPath: /tmp/pods\n",
    "staticPodURL": "staticPodURL: http://evil/pod.yaml\n",
}


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.parametrize("writer", ["kubeadm", "trainyard", ""])
def test_a_field_manager_s_name_opens_no_kubelet(name: str, writer: str) -> None:
    """Who may write the ConfigMap for a minute chooses the name of its manager, too."""
    wanted = CLUSTER.replace("enabled: false", "enabled: true") if name == "authentication" else CLUSTER + OPEN[name]
    plan, findings = make_plan(seen(wanted=wanted, writer=writer), SOCKET, Host())
    assert not plan.steps and [each.subject for each in findings] == [NAME] and name in findings[0].before


def test_the_words_of_kubeadm_open_nothing() -> None:
    more = "authorization:\n  mode: Webhook\n  webhook:\n    cacheAuthorizedTTL: 0s\nreadOnlyPort: 0\n"
    assert kubelet_files.opens(f"{CLUSTER}{more}staticPodPath: /etc/kubernetes/manifests\n") == []
