"""What kubeadm_init does for every state in which it can find a host."""

from __future__ import annotations

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.kubeadm.init import (
    KUBEADM_FILES,
    RESUME_PHASES,
    WANTED,
    InitSettings,
    InitState,
    config_drift,
    decide,
    make_plan,
)
from trainyard.kubeadm.kubeadm_program import COMPLETE, STARTED, Host, as_text

ALL = KUBEADM_FILES
CERTIFICATES = ("pki/ca.crt", "admin.conf")
HAND_MADE = {"files": ALL, "etcd_data": True, "kubelet_config": True}

DECISIONS = {
    "fresh": (InitState(), "init"),
    "reset by hand after a complete init": (InitState(marker=COMPLETE), "init"),
    "killed before kubeadm wrote anything": (InitState(marker=STARTED), "init"),
    "killed while certificates were made": (InitState(marker=STARTED, files=("pki/ca.crt",)), "reset"),
    "killed before the API server": (InitState(marker=STARTED, files=CERTIFICATES, api="down"), "reset"),
    "killed in a reset": (InitState(marker=STARTED, etcd_data=True), "reset"),
    "never came up": (InitState(marker=STARTED, **HAND_MADE, api="down"), "reset"),
    "killed before the role binding of admin.conf": (InitState(marker=STARTED, **HAND_MADE, api="ready"), "resume"),
    "killed in the addons": (InitState(marker=STARTED, **HAND_MADE, api="ready", configured=True), "resume"),
    "complete": (InitState(marker=COMPLETE, **HAND_MADE, api="ready", configured=True), "none"),
    "complete, made by hand": (InitState(**HAND_MADE, api="ready", configured=True), "none"),
    "complete, ConfigMap lost": (InitState(marker=COMPLETE, **HAND_MADE, api="ready"), "resume"),
}

REFUSALS = {
    "complete, API down for good": (InitState(marker=COMPLETE, **HAND_MADE, api="down"), "does not answer"),
    "made by hand, API down for good": (InitState(**HAND_MADE, api="down"), "does not answer"),
    "certificates expired": (InitState(marker=COMPLETE, **HAND_MADE, api="denied"), "does not accept"),
    "a database without a configuration": (InitState(etcd_data=True), "holds a database"),
    "the same after a complete init": (InitState(marker=COMPLETE, etcd_data=True), "holds a database"),
    "a worker of some cluster": (InitState(files=("pki/ca.crt", "kubelet.conf")), "did not make"),
    "another tool's cluster": (InitState(files=("admin.conf",), api="ready"), "not created by kubeadm"),
}


@pytest.mark.parametrize(("state", "action"), DECISIONS.values(), ids=DECISIONS)
def test_decision(state: InitState, action: str) -> None:
    assert decide(state) == action


@pytest.mark.parametrize(("state", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refusal_names_cause_and_remedy(state: InitState, message: str) -> None:
    with pytest.raises(TrainyardError, match=message) as caught:
        decide(state)
    assert "reset.yml" in caught.value.remedy


@pytest.mark.parametrize("marker", ["", COMPLETE])
@pytest.mark.parametrize("api", ["none", "down", "denied", "ready"])
@pytest.mark.parametrize("files", [(), CERTIFICATES, ALL], ids=["none", "some", "all"])
@pytest.mark.parametrize("etcd_data", [False, True])
def test_only_an_own_unfinished_init_is_ever_reset(marker: str, api: str, files: tuple, etcd_data: bool) -> None:
    try:
        action = decide(InitState(marker=marker, files=files, etcd_data=etcd_data, api=api, configured=True))
    except TrainyardError:
        return
    assert action != "reset"
    assert action != "init" or not etcd_data


@pytest.mark.parametrize(
    ("state", "comes_back"),
    [
        (InitState(), False),
        (InitState(**HAND_MADE, api="down"), True),
        (InitState(**HAND_MADE, api="ready"), False),
        (InitState(files=CERTIFICATES, kubelet_config=True, api="down"), False),
        (InitState(files=ALL, api="down"), False),
    ],
)
def test_waits_only_for_what_the_kubelet_can_bring_back(state: InitState, comes_back: bool) -> None:
    assert state.may_come_back is comes_back


def what(state: InitState, host: Host | None = None) -> list[str]:
    return [step.what for step in make_plan(state, InitSettings([{"kind": "x"}], host=host or Host())).steps]


def test_fresh_plan_records_the_start_before_kubeadm_writes() -> None:
    started, init, keep, protect, complete = what(InitState())
    assert "started" in started
    assert "kubeadm init" in init
    assert "configuration" in keep
    assert "to its owner" in protect
    assert "complete" in complete


def test_reset_comes_first_and_is_recorded_as_unfinished_until_the_end() -> None:
    steps = what(InitState(marker=STARTED, files=CERTIFICATES))
    assert "kubeadm reset" in steps[0]
    assert steps[1:] == what(InitState())


def test_resume_repeats_the_phases_that_need_the_api() -> None:
    steps = what(InitState(marker=STARTED, **HAND_MADE, api="ready"))
    assert [step.split(": ")[1] for step in steps[: len(RESUME_PHASES)]] == list(RESUME_PHASES)
    assert "complete" in steps[-1]


def test_complete_has_nothing_to_do() -> None:
    plan = make_plan(InitState(**HAND_MADE, api="ready", configured=True), InitSettings([]))
    assert not plan.changed
    assert plan.diff()["before"] == plan.diff()["after"]


def test_a_resumed_init_leaves_the_addons_alone() -> None:
    """kubeadm's own phase refuses a CoreDNS that is newer than its table of migrations (1.14.2), and the lock's is."""
    assert not [step for step in what(InitState(marker=STARTED, **HAND_MADE, api="ready")) if "addon" in step]


def test_a_kubelet_configuration_that_all_may_read_is_mended_on_a_finished_cluster() -> None:
    state = InitState(**HAND_MADE, api="ready", configured=True, kubelet_config_open=True)
    plan = make_plan(state, InitSettings([]))
    assert [step.what for step in plan.steps] == ["Restrict the kubelet's configuration to its owner"]
    assert not plan.diff()["after"]["kubelet_config_open"]


def test_what_waiting_does_not_mend_is_refused_with_its_reason() -> None:
    state = InitState(marker=COMPLETE, **HAND_MADE, api="broken", reason="certificate has expired")
    assert not state.may_come_back
    with pytest.raises(TrainyardError, match="certificate has expired") as caught:
        decide(state)
    assert "check-expiration" in caught.value.remedy


VERIFIES = {"name": "kubelet-certificate-authority", "value": "/etc/kubernetes/pki/ca.crt"}
CLUSTER = {"kind": "ClusterConfiguration", "apiServer": {"extraArgs": [], "certSANs": ["a"]}}


@pytest.mark.parametrize(
    ("wanted", "fields"),
    [
        ([CLUSTER], []),
        ([{"kind": "InitConfiguration", "timeouts": {}}, CLUSTER], []),
        ([CLUSTER | {"apiServer": {"certSANs": ["b"], "extraArgs": []}}], ["ClusterConfiguration.apiServer.certSANs"]),
        ([CLUSTER | {"x": 1}], ["ClusterConfiguration.x"]),
        # Only a new cluster gets it.
        ([CLUSTER | {"apiServer": {"extraArgs": [VERIFIES], "certSANs": ["a"]}}], []),
    ],
)
def test_drift_names_the_fields(tmp_path, wanted: list, fields: list[str]) -> None:
    host = Host(state=str(tmp_path))
    assert config_drift(host, wanted) == []
    host.store("init.yaml", as_text([CLUSTER, {"kind": "InitConfiguration", "timeouts": {"discovery": "1s"}}]))
    assert config_drift(host, wanted) == fields


def test_what_a_finished_cluster_lacks_is_kept_once_beside_its_record(tmp_path) -> None:
    host, state = Host(state=str(tmp_path)), InitState(marker=COMPLETE, **HAND_MADE, api="ready", configured=True)
    host.store("init.yaml", as_text([CLUSTER]))
    settings = InitSettings([CLUSTER | {"x": 1}], host=host)
    plan = make_plan(state, settings)
    assert [step.what for step in plan.steps] == [f"Save the configuration of the inventory as {tmp_path}/{WANTED}"]
    plan.execute()
    assert host.stored(WANTED) == as_text(settings.config)
    assert not make_plan(state, settings).changed
    host.store("init.yaml", host.stored(WANTED))
    assert config_drift(host, settings.config) == []


def test_a_record_in_the_form_of_earlier_releases_is_not_compared(tmp_path) -> None:
    host = Host(state=str(tmp_path))
    host.store("init.yaml", "kind: ClusterConfiguration\n")
    assert config_drift(host, [CLUSTER]) == []
