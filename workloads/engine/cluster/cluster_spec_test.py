"""Tests of TF_CONFIG: accepted values, and the errors for rejected ones."""

from __future__ import annotations

import json

import pytest

from engine.cluster.cluster_spec import parse
from engine.errors import InputError

CLUSTER = {"chief": ["c:2222"], "ps": ["p:2222"], "worker": ["w0.run:2222", "w1.run:2222"]}


def config(cluster=None, task=None) -> str:
    return json.dumps(
        {"cluster": CLUSTER if cluster is None else cluster, "task": task or {"type": "worker", "index": 1}}
    )


def test_a_good_config_is_understood():
    cluster = parse(config())
    assert (cluster.role, cluster.index, cluster.address) == ("worker", 1, "w1.run:2222")
    assert cluster.peers("ps", "worker") == {"ps 0": "p:2222", "worker 0": "w0.run:2222", "worker 1": "w1.run:2222"}


def test_an_index_from_an_environment_variable_is_a_string():
    assert parse(config(task={"type": "ps", "index": "0"})).index == 0


def test_an_evaluator_needs_no_place_in_the_cluster():
    cluster = parse(config(task={"type": "evaluator", "index": "0"}))
    assert (cluster.role, cluster.index) == ("evaluator", 0)
    assert "evaluator 0" not in cluster.peers("chief", "ps", "worker", "evaluator")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "not set"),
        ("", "not set"),
        ("{", "not JSON"),
        ("[]", "no object 'cluster'"),
        (config({}), "no object 'cluster'"),
        (config({**CLUSTER, "master": ["m:1"]}), "unknown role 'master'"),
        (config({**CLUSTER, "chief": ["c:1", "d:1"]}), "2 chiefs"),
        (config({k: v for k, v in CLUSTER.items() if k != "ps"}), "no task of role 'ps'"),
        (config({**CLUSTER, "ps": []}), "not a non-empty list"),
        (config({**CLUSTER, "ps": ["p"]}), "'p' is not 'host:port'"),
        (config({**CLUSTER, "ps": ["p:0"]}), "'p:0' is not 'host:port'"),
        (config({**CLUSTER, "ps": ["p:65536"]}), "is not 'host:port'"),
        (config({**CLUSTER, "chief": ["c:65535"]}), "Use a port from 1 to 65534"),
        (config({**CLUSTER, "ps": [2222]}), "2222 is not 'host:port'"),
        (config({**CLUSTER, "ps": ["c:2222"]}), "to both chief and ps"),
        (json.dumps({"cluster": CLUSTER}), "no object 'task'"),
        (config(task={"type": "master", "index": 0}), "'master' is not in the cluster"),
        (config(task={"type": "evaluator", "index": 1}), "index 1 of evaluator is out of range"),
        (config(task={"type": "worker", "index": 2}), "index 2 of worker is out of range"),
        (config(task={"type": "worker", "index": -1}), "out of range"),
        (config(task={"type": "worker", "index": True}), "out of range"),
    ],
)
def test_a_bad_config_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        parse(text)
