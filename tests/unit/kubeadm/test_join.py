"""What kubeadm_join does for every state in which it can find a host."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.kubeadm import join as kubeadm_join
from trainyard.kubeadm.join import JoinSettings, JoinState, decide, join_configuration, make_plan, require_credentials
from trainyard.kubeadm.kubeadm_program import COMPLETE, STARTED, STATIC_PODS

CA = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----"
OTHER_CA = CA.replace("ours", "theirs")
JOINED = {"kubelet_conf": True, "remains": ("pki/ca.crt",), "ca": CA}
WORKER = JoinState(**JOINED, node="registered")
CONTROL_PLANE = JoinState(**JOINED, node="registered", static_pods=STATIC_PODS, marker=COMPLETE)

DECISIONS = {
    "fresh": (JoinState(), False, "join"),
    "fresh control plane": (JoinState(), True, "join"),
    "interrupted before the certificate came": (
        JoinState(remains=("bootstrap-kubelet.conf", "pki/ca.crt"), ca=CA),
        False,
        "reset",
    ),
    "remains of another cluster without credentials": (JoinState(remains=("pki/ca.crt",), ca=OTHER_CA), False, "reset"),
    "joined": (WORKER, False, "none"),
    "joined, CA with a trailing line": (JoinState(**{**JOINED, "ca": CA.strip()}, node="registered"), False, "none"),
    "joined, node object deleted": (JoinState(**JOINED, node="missing"), False, "restart"),
    "control plane joined": (CONTROL_PLANE, True, "none"),
    "control plane, join interrupted": (
        JoinState(**JOINED, node="registered", static_pods=("etcd",), marker=STARTED),
        True,
        "reset",
    ),
    "control plane, join interrupted at once": (JoinState(marker=STARTED), True, "join"),
    "control plane that init made": (
        JoinState(**JOINED, node="registered", static_pods=STATIC_PODS),
        True,
        "none",
    ),
}

REFUSALS = {
    "another cluster": (JoinState(**{**JOINED, "ca": OTHER_CA}, node="registered"), False, "another cluster"),
    "another cluster that is gone": (JoinState(**{**JOINED, "ca": OTHER_CA}, node="down"), False, "another cluster"),
    "API down": (JoinState(**JOINED, node="down"), False, "does not answer"),
    "API's certificate expired": (JoinState(**JOINED, node="broken", reason="has expired"), False, "has expired"),
    "another node's credentials": (JoinState(**JOINED, node="forbidden"), False, "another name"),
    "credentials expired": (JoinState(**JOINED, node="denied"), False, "does not accept"),
    "a control plane where a worker is wanted": (CONTROL_PLANE, False, "not a worker"),
    "a worker where a control plane is wanted": (WORKER, True, "not a control plane"),
    "a control plane without a kubelet": (JoinState(static_pods=STATIC_PODS), False, "without a kubelet"),
}


@pytest.mark.parametrize(("state", "control_plane", "action"), DECISIONS.values(), ids=DECISIONS)
def test_decision(state: JoinState, control_plane: bool, action: str) -> None:
    assert decide(state, CA + "\n", control_plane) == action


@pytest.mark.parametrize(("state", "control_plane", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refusal_names_cause_and_remedy(state: JoinState, control_plane: bool, message: str) -> None:
    with pytest.raises(TrainyardError, match=message) as caught:
        decide(state, CA, control_plane)
    assert caught.value.remedy


def test_without_a_known_ca_a_joined_node_is_left_alone() -> None:
    assert decide(WORKER, "", False) == "none"


def settings(**changes) -> JoinSettings:
    return JoinSettings(
        **{
            "endpoint": "192.0.2.1:6443",
            "ca": CA,
            "ca_cert_hash": "sha256:5",
            "node_name": "w1",
            "node_ip": "192.0.2.2",
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("state", "changes", "words"),
    [
        (JoinState(), {}, ["kubeadm join", "registered", "to its owner"]),
        (JoinState(remains=("pki/ca.crt",)), {}, ["kubeadm reset", "kubeadm join", "registered", "to its owner"]),
        (JoinState(**JOINED, node="missing"), {}, ["Restart the kubelet", "registered"]),
        (
            JoinState(),
            {"control_plane": True},
            ["started", "kubeadm join", "complete", "registered", "to its owner"],
        ),
        (
            JoinState(marker=STARTED, remains=("pki/ca.crt",), etcd_member=True),
            {"control_plane": True},
            ["etcd", "kubeadm reset", "started", "kubeadm join", "complete", "registered", "to its owner"],
        ),
        (WORKER, {}, []),
        (replace(WORKER, kubelet_config_open=True), {}, ["to its owner"]),
    ],
)
def test_steps(state: JoinState, changes: dict, words: list[str]) -> None:
    steps = make_plan(state, settings(**changes)).steps
    assert len(steps) == len(words)
    assert all(word in step.what for step, word in zip(steps, words, strict=True))


def test_a_plan_needs_no_credentials_and_shows_none() -> None:
    plan = make_plan(JoinState(), settings(endpoint="", ca="", token="abcdef.secret"))
    assert plan.changed
    assert "secret" not in json.dumps(plan.diff())


@pytest.mark.parametrize(
    "changes",
    [{"ca": ""}, {"ca_cert_hash": ""}, {"endpoint": ""}, {"token": ""}, {"control_plane": True, "certificate_key": ""}],
)
def test_a_join_without_credentials_is_refused(changes: dict) -> None:
    with pytest.raises(TrainyardError):
        require_credentials(settings(**{"token": "t", **changes}))


def test_configuration_pins_the_ca_and_names_the_node() -> None:
    document = join_configuration(settings(token="abcdef.0123456789abcdef", kubelet_extra_args={"v": "4"}))
    discovery = document["discovery"]["bootstrapToken"]
    assert discovery["caCertHashes"] == ["sha256:5"]
    assert "unsafeSkipCAVerification" not in discovery
    assert document["nodeRegistration"]["kubeletExtraArgs"] == [
        {"name": "node-ip", "value": "192.0.2.2"},
        {"name": "v", "value": "4"},
    ]
    assert "controlPlane" not in document


def test_configuration_of_a_control_plane() -> None:
    document = join_configuration(settings(control_plane=True, certificate_key="00"))
    assert "taints" not in document["nodeRegistration"]
    assert join_configuration(settings(schedulable=True))["nodeRegistration"]["taints"] == []
    assert join_configuration(settings(timeouts={"discovery": "5m0s"}))["timeouts"]["discovery"] == "5m0s"
    assert document["controlPlane"] == {
        "localAPIEndpoint": {"advertiseAddress": "192.0.2.2"},
        "certificateKey": "00",
    }


def test_a_join_waits_until_the_old_node_is_given_up(monkeypatch) -> None:
    states = iter([True, True, False])
    monkeypatch.setattr(kubeadm_join, "node_is_ready", lambda *_: next(states))
    monkeypatch.setattr("time.sleep", lambda _: None)
    kubeadm_join.wait_for_name(settings())
    assert next(states, "none left") == "none left"


def test_a_name_that_another_host_has_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(kubeadm_join, "node_is_ready", lambda *_: True)
    monkeypatch.setattr(kubeadm_join, "SILENCE_SECONDS", 0.0)
    with pytest.raises(TrainyardError, match="node w1 that is Ready and is not this host") as refusal:
        kubeadm_join.wait_for_name(settings())
    assert "kubernetes_node_name" in refusal.value.remedy


def test_kubeadm_comes_after_the_wait(monkeypatch) -> None:
    def refuse(_: JoinSettings) -> None:
        raise TrainyardError("the name is taken")

    monkeypatch.setattr(kubeadm_join, "wait_for_name", refuse)
    monkeypatch.setattr(kubeadm_join.adm, "configuration", lambda _: pytest.fail("kubeadm was about to run"))
    with pytest.raises(TrainyardError, match="the name is taken"):
        kubeadm_join.join(settings(token="abcdef.0123456789abcdef"))
