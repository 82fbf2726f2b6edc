"""TensorBoard for a claim: what is made for it, who reaches it, and when it goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.training.samples import training
from trainyard.trainings.model import Login, Logs, Training
from trainyard.trainings.names import TENSORBOARD_LABEL
from trainyard.trainings.objects import surroundings
from trainyard.trainings.tensorboard import shown
from trainyard.verify.training_checks import network_policies

IMAGE = "r/tensorboard@sha256:1"
SHARED = Logs(size="1Gi", claim="training")


def board(logs: Logs = SHARED, **changes: Any) -> Training:
    return replace(training(), tensorboard=IMAGE, logs=logs, **changes)


def kinds(one: Training) -> dict[str, Any]:
    return {each["kind"]: each for each in shown(one)}


def test_nothing_where_none_is_asked_for() -> None:
    assert shown(training()) == []


def test_runs_that_share_a_claim_share_it() -> None:
    one, other = board(), board(name="other")
    assert shown(one) == shown(other)
    assert {each["metadata"]["name"] for each in shown(one)} == {"tensorboard-training"}
    for each in shown(one):
        assert each["metadata"]["labels"][TENSORBOARD_LABEL] == "training"
        assert "trainyard.dev/run" not in each["metadata"]["labels"], "it would be taken for a run"


def test_a_claim_of_its_own_has_one_of_its_own() -> None:
    own = kinds(board(Logs(size="1Gi", node="w1", path="/srv")))
    assert own["Service"]["metadata"]["name"] == "tensorboard-mnist-logs"
    (logs, _) = own["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert logs["persistentVolumeClaim"] == {"claimName": "mnist-logs", "readOnly": True}


def test_it_reads_and_nothing_else() -> None:
    spec = kinds(board())["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == IMAGE
    assert "--path_prefix=/tensorboard/trainings/training" in container["args"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/tensorboard/trainings/training/"
    assert [mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")] == ["tmp"]
    assert container["securityContext"]["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    assert spec["strategy"] == {"type": "Recreate"}, "a volume of one node is for one pod at a time"


def test_the_console_alone_comes_in_and_nothing_goes_out() -> None:
    spec = kinds(board())["NetworkPolicy"]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"] and "egress" not in spec
    ((rule,), ports) = spec["ingress"][0]["from"], spec["ingress"][0]["ports"]
    assert rule["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "trainyard-console"}
    assert rule["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "console"}
    assert [port["port"] for port in ports] == [6006]


def test_its_policy_is_not_taken_for_that_of_a_run() -> None:
    deny, *_ = [each for each in surroundings(board()) if each["kind"] == "NetworkPolicy"]
    check = network_policies("mnist", [deny, kinds(board())["NetworkPolicy"]])
    assert check.detail == "no policy selects the pods of mnist"


@pytest.mark.parametrize("login", [None, Login("registry.example.com", "reader", "s3cret")])
def test_a_login_of_its_own_outlives_the_run(login: Login | None) -> None:
    made = kinds(board(login=login))
    secrets = made["Deployment"]["spec"]["template"]["spec"].get("imagePullSecrets", [])
    assert [each["name"] for each in secrets] == (["tensorboard-training-pull"] if login else [])
    assert ("Secret" in made) == bool(login)


def test_it_comes_after_the_claim() -> None:
    order = [each["kind"] for each in surroundings(board(Logs(size="1Gi", node="w1", path="/srv")))]
    assert order.index("PersistentVolumeClaim") < order.index("Deployment")
