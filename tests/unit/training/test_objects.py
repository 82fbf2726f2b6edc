"""What a training needs beside its JobSet: namespace, policies, volume, and the probe of its isolation."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

from tests.unit.training.samples import training
from trainyard.trainings.model import Login
from trainyard.trainings.objects import network_policies, surroundings, volume
from trainyard.trainings.probe import probe
from trainyard.trainings.template import pod_template


def test_only_pods_of_the_run_reach_each_other() -> None:
    deny, own = network_policies(training(port=8000))
    assert deny["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    mine = {"matchLabels": {"trainyard.dev/run": "mnist"}}
    assert own["spec"]["podSelector"] == mine
    # All ports, because NCCL, gloo and MPI choose theirs at random.
    assert own["spec"]["ingress"] == [{"from": [{"podSelector": mine}]}]
    between, dns = own["spec"]["egress"]
    assert between == {"to": [{"podSelector": mine}]}
    assert {each["port"] for each in dns["ports"]} == {53}


def test_a_run_of_one_pod_reaches_dns_alone_and_is_reached_by_nothing() -> None:
    _, own = network_policies(training(topology="single"))
    assert own["spec"]["ingress"] == [] and len(own["spec"]["egress"]) == 1


def test_the_stranger_may_send_anywhere_and_is_not_of_the_run() -> None:
    policy, pod = probe(training(), training().roles["ps"], "kubernetes.default.svc,443", seconds=60)
    assert policy["spec"]["egress"] == [{}]
    assert "trainyard.dev/run" not in pod["metadata"]["labels"]
    assert pod["spec"]["containers"][0]["args"][1] == "target,mnist-ps-0-0.mnist,2222"


def test_volume_on_a_node_or_of_a_class() -> None:
    assert [each["kind"] for each in volume(training())] == ["PersistentVolume", "PersistentVolumeClaim"]
    (claim,) = volume(training(logs={"storage_class": "efs"}))
    assert claim["spec"]["storageClassName"] == "efs"
    assert surroundings(training())[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_login_reaches_every_pod_and_stands_in_a_secret_only() -> None:
    mine = replace(training(), login=Login("registry.example.com", "reader", "s3cret"))
    assert any(not image.startswith("registry.example.com/") for image in replace(mine, code="other.org/x").images)
    (secret,) = [each for each in surroundings(replace(mine, code="other.org/x")) if each["kind"] == "Secret"]
    config = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))
    assert config == {"auths": {"registry.example.com": {"auth": base64.b64encode(b"reader:s3cret").decode()}}}
    named = [{"name": secret["metadata"]["name"]}]
    pods = [pod_template(mine, role, "now")["spec"] for role in mine.roles]
    assert [pod["imagePullSecrets"] for pod in [*pods, probe(mine, mine.roles["ps"], "a,1", seconds=1)[1]["spec"]]] == [
        named
    ] * 4
    assert "s3cret" not in repr(mine) + json.dumps(pods)
    assert "imagePullSecrets" not in pod_template(training(), "ps", "now")["spec"]
