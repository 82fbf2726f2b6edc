"""Reading a snapshot: from an API server, by whoever may read less, and what is kept of it."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.apiserver import ApiServer
from tests.unit.why.cluster import NODES, NOW, SYSTEM, leases, other
from tests.unit.why.samples import PODS, TRAINS, jobs, live, record, said, steps, unplaced
from trainyard.kube.api import Api
from trainyard.kube.reads import Unread, read
from trainyard.why.judge import judge
from trainyard.why.snapshot import Snapshot, snapshot

SPACE = "/api/v1/namespaces/trainings"
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets"


def server(*pods: dict[str, Any], **more: Any) -> ApiServer:
    """The cluster of the samples."""
    run = live()
    there = {f"{SETS}/mnist": run}
    there |= {
        f"/api/v1/namespaces/{each['metadata']['namespace']}/pods/{each['metadata']['name']}": each for each in pods
    }
    there |= {f"/apis/batch/v1/namespaces/trainings/jobs/{each['metadata']['name']}": each for each in jobs(run)}
    there |= {f"/api/v1/nodes/{each['metadata']['name']}": each for each in NODES}
    there |= {f"{SPACE}/pods/{PODS[0]['metadata']['name']}/log": lambda _: TRAINS}
    there[SPACE] = {"kind": "Namespace", "metadata": {"name": "trainings", "labels": {"a": "b"}}}
    for each in leases():
        there[f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{each['metadata']['name']}"] = each
    for path in ("events", "persistentvolumeclaims", "resourcequotas", "networkpolicies"):
        there[f"{SPACE}/{path}"] = {"items": []}
    there["/apis/networking.k8s.io/v1/namespaces/trainings/networkpolicies"] = {"items": []}
    there |= {"/api/v1/persistentvolumes": {"items": []}, "/apis/storage.k8s.io/v1/storageclasses": {"items": []}}
    return ApiServer({**there, **more})


def look(cluster: ApiServer, run: str = "mnist", namespace: str = "") -> Snapshot:
    return read(Api(cluster), snapshot(run, namespace, NOW))


def read_part(seen: Snapshot, name: str) -> list[dict[str, Any]]:
    part = seen.parts[name]
    assert isinstance(part, list)
    return part


def selected(query: list[tuple[str, str]]) -> str:
    """Pods of the run by a selector of a set, which the server of the tests does not know."""
    assert dict(query).get("labelSelector", "") in (
        "",
        "trainyard.dev/run in (mnist,mnist.import)",
        "trainyard.dev/role",
    )
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "items": PODS})


def test_a_run_that_trains_is_read_and_judged() -> None:
    cluster = server(*PODS, *SYSTEM, **{f"{SPACE}/pods": selected})
    seen = look(cluster)
    answer = judge(seen)
    assert (answer.state, answer.status, answer.findings) == ("running", 0, [])
    assert seen.names == ["mnist"] and seen.namespace == "trainings"
    assert [each["metadata"]["labels"] for each in read_part(seen, "space")] == [{"a": "b"}]
    names = [each["metadata"]["name"] for each in read_part(seen, "leases")]
    assert names == ["kube-scheduler", "kube-controller-manager"]
    assert not [name for name, part in seen.parts.items() if isinstance(part, Unread)]
    assert not cluster.writes
    assert len(cluster.calls) < 25, "a run's page asks for it every few seconds"


def test_no_environment_is_kept() -> None:
    run = live()
    secret = [{"name": "PASSWORD", "value": "hunter2"}]
    for job in run["spec"]["replicatedJobs"]:
        job["template"]["spec"]["template"]["spec"]["containers"][0]["env"] = secret
    pods = [{**each, "spec": {**each["spec"], "containers": [
        {**each["spec"]["containers"][0], "env": secret}]}} for each in PODS]  # fmt: skip
    answer = json.dumps({"items": pods})
    seen = look(server(*pods, **{f"{SETS}/mnist": run, f"{SPACE}/pods": lambda _: answer}))
    assert "hunter2" not in json.dumps(seen.as_json())


def test_who_may_not_see_all_pods_sees_those_of_the_system() -> None:
    mine = unplaced("worker", 1)
    there = [*PODS[:3], mine]
    cluster = server(*there, *SYSTEM, **{"/api/v1/pods": 403})
    cluster.objects[f"{SPACE}/pods"] = lambda _: json.dumps({"items": there})
    seen = look(cluster, namespace="trainings")
    assert isinstance(seen.parts["elsewhere"], Unread)
    everyone = seen.parts["everyone"]
    assert isinstance(everyone, list)
    assert {each["metadata"]["namespace"] for each in everyone} == {"trainings", "kube-system", "jobset-system"}
    assert [each.what for each in judge(seen).unread] == ["elsewhere"]


def test_who_holds_it_says_how_far_it_is() -> None:
    held = [other("cnn", "chief-0", cpu="3900m"), other("cnn", "worker-0", "worker2", cpu="3900m")]
    held[0]["status"]["containerStatuses"] = [{"state": {"running": {}}}]
    for each in held:
        each["metadata"] |= {"creationTimestamp": "2026-11-23T12:00:00Z"}
    cnn = live()
    cnn["metadata"] |= {"name": "cnn", "labels": {**cnn["metadata"]["labels"], "trainyard.dev/run": "cnn"}}
    there = [*PODS[:3], unplaced("worker", 1)]
    cluster = server(*there, *SYSTEM, *held, **{f"{SETS}/cnn": cnn})
    cluster.objects[f"{SPACE}/pods"] = lambda _: json.dumps({"items": there})
    cluster.objects[f"{SPACE}/pods/cnn-chief-0/log"] = lambda _: said(*steps())
    seen = look(cluster)
    assert seen.others == {"trainings/cnn": [1500, 2000, 20.0]}
    (cause,) = judge(seen).findings
    assert "held by cnn/chief-0 (step 1500 of 2000, about 20 s left); " in cause.evidence[0].text


def test_data_that_is_brought_before_the_run_is_there() -> None:
    labels = {"app.kubernetes.io/managed-by": "trainyard"}
    job = {"metadata": {"name": "mnist-import", "namespace": "trainings", "uid": "i", "labels": labels}, "spec": {}}
    cluster = server(**{"/apis/batch/v1/namespaces/trainings/jobs/mnist-import": job})
    del cluster.objects[f"{SETS}/mnist"]
    seen = look(cluster)
    assert (judge(seen).state, [each.code for each in judge(seen).findings]) == ("starting", ["importing"])


def test_a_run_that_is_on_record_alone() -> None:
    kept = record("passed", ended_at="2026-11-23T11:00:00Z")
    kept["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "trainyard", "trainyard.dev/run": "mnist"}
    cluster = server(**{f"{SPACE}/configmaps/mnist-result": kept, f"{SPACE}/pods": {"items": []}})
    del cluster.objects[f"{SETS}/mnist"]
    assert judge(look(cluster)).headline == "mnist finished 1 h 10 min ago"


def test_an_unknown_run_names_those_that_there_are() -> None:
    assert judge(look(server(), "mnst")).findings[0].message == "the runs are mnist"
