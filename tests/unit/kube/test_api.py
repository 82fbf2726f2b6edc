"""Applying manifests: order, the comparison by dry run, waits, and a server that does not answer."""

from __future__ import annotations

import json

import pytest

from tests.unit.apiserver import ApiServer
from trainyard.core.errors import TrainyardError, WaitError
from trainyard.kube.api import Api, KubeError, documents
from trainyard.kube.apply import Wait, is_met, plan_objects, retry, unreachable_plan, wait_for


def config_map(name: str = "one", **data: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}, "data": data}


def test_create_repeat_modify_repeat() -> None:
    api = Api(ApiServer())
    for wanted, steps in (
        ([config_map(x="1")], ["Create ConfigMap a/one"]),
        ([config_map(x="1")], []),
        ([config_map(x="2")], ["Update ConfigMap a/one"]),
        ([config_map(x="2")], []),
    ):
        plan = plan_objects(api, wanted)
        assert [step.what for step in plan.steps] == steps
        plan.execute()


def test_planning_writes_nothing() -> None:
    server = ApiServer()
    plan_objects(Api(server), [config_map()])
    assert server.writes == []


def test_namespaces_go_first_and_webhooks_last() -> None:
    hook = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    objects = [
        {**hook, "metadata": {"name": "h"}},
        config_map(),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "creationTimestamp": None}},
    ]
    kinds = [step.what.split()[1] for step in plan_objects(Api(ApiServer()), objects).steps]
    assert kinds == ["Namespace", "ConfigMap", "ValidatingWebhookConfiguration"]


def test_secrets_do_not_show_in_the_diff() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "a"},
        "data": {"k": "aHVzaA=="},
    }
    assert "aHVzaA" not in json.dumps(plan_objects(Api(ApiServer()), [secret]).diff())


@pytest.mark.parametrize(
    "broken", [{}, {"kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}]
)
def test_no_manifest(broken: dict) -> None:
    with pytest.raises(TrainyardError, match="is not a manifest"):
        plan_objects(Api(ApiServer()), [broken])


PATH = "/api/v1/namespaces/a/configmaps/one"


@pytest.mark.parametrize(("status", "note"), [(404, "not validated"), (503, "not validated"), (500, None), (422, None)])
def test_a_new_object_is_tried_where_it_can_be(status: int, note: str | None) -> None:
    server = ApiServer()
    server.refusals[PATH] = [status]
    if note is None:
        with pytest.raises(KubeError, match=f"status {status}"):
            plan_objects(Api(server), [config_map("first"), config_map()])
    else:
        assert note in plan_objects(Api(server), [config_map()]).steps[0].what
    assert f"dry PATCH {PATH}" in server.calls
    assert server.writes == []


def deployment(observed: int = 2, **status: object) -> dict:
    return {"kind": "Deployment", "metadata": {"name": "d", "generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": observed, **status}}  # fmt: skip


ROLLED = {"updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}


@pytest.mark.parametrize(
    ("obj", "condition", "met"),
    [
        (deployment(**ROLLED), "RolledOut", True),
        (deployment(**{**ROLLED, "replicas": 3}), "RolledOut", False),
        (deployment(observed=1, **ROLLED), "RolledOut", False),
        (deployment(conditions=[{"type": "Available", "status": "True"}]), "Available", True),
        (deployment(conditions=[{"type": "Available", "status": "False"}]), "Available", False),
        (deployment(conditions=None), "Available", False),
        ({"metadata": {}, "status": {"desiredNumberScheduled": 0}}, "RolledOut", False),
        ({"metadata": {}, "status": {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}},
         "RolledOut", True),
        ({"metadata": {}}, "Exists", True),
        ({"metadata": {}}, "Ready", False),
    ],
)  # fmt: skip
def test_conditions(obj: dict, condition: str, met: bool) -> None:
    assert is_met(obj, condition) is met


def test_a_wait_says_what_it_saw_last() -> None:
    with pytest.raises(WaitError, match=r"Deployment a/d to be RolledOut; last state: there is none"):
        wait_for(Api(ApiServer()), [Wait("Deployment", "RolledOut", name="d", namespace="a")], timeout=0)


def test_a_server_that_does_not_answer() -> None:
    api = Api(lambda *_: (0, "connection refused"))
    with pytest.raises(KubeError, match="does not answer: connection refused") as caught:
        plan_objects(api, [config_map()])
    plan = unreachable_plan([config_map()], str(caught.value))
    assert plan.changed
    assert "Not planned" in plan.diff()["prepared"]


@pytest.mark.parametrize(
    ("status", "message", "transient"),
    [
        (503, "", True),
        (500, "failed calling webhook", True),
        (500, "etcdserver: request timed out", True),
        (500, "rpc error: code = Unavailable desc = transport is closing", True),
        (403, 'pods is forbidden: RBAC: clusterrole.rbac.authorization.k8s.io "cluster-admin" not found', True),
        (403, "pods is forbidden", False),
        (500, "boom", False),
        (409, "", False),
        (422, "", False),
    ],
)
def test_only_what_passes_by_itself_is_tried_again(status: int, message: str, transient: bool) -> None:
    assert KubeError(message, status=status).transient is transient


def test_retry_gives_the_error_when_time_is_up() -> None:
    def fail() -> None:
        raise KubeError("failed calling webhook", status=500)

    with pytest.raises(KubeError, match="failed calling webhook"):
        retry(fail, timeout=0)


def test_documents_skip_what_is_empty_and_unpack_lists() -> None:
    text = "---\n---\nkind: A\n---\nkind: List\nitems: [{kind: B}]\n"
    assert [each["kind"] for each in documents(text)] == ["A", "B"]
