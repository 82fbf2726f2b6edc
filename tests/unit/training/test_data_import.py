"""An import before the run: what may go out, what is taken up, what a failure says, and what is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from trainyard.core.errors import TrainyardError
from trainyard.core.progress import Progress
from trainyard.kube.api import Api
from trainyard.trainings import data_import
from trainyard.trainings.data_import import DataImport, around, job
from trainyard.trainings.jobset import spec_hash
from trainyard.trainings.model import Import, Training
from trainyard.trainings.run import Run, Settings
from trainyard.trainings.template import pod_template

SPACE = "/namespaces/trainings"
JOB = f"/apis/batch/v1{SPACE}/jobs/mnist-import"
POLICY = f"/apis/networking.k8s.io/v1{SPACE}/networkpolicies/mnist-import"
CLAIM = f"/api/v1{SPACE}/persistentvolumeclaims/datasets"
FILES = f"/api/v1{SPACE}/persistentvolumeclaims/training"
POD = f"/api/v1{SPACE}/pods/mnist-import-abcde"
DATA = {
    "claim": "datasets",
    "folder": "mnist",
    "url": "https://10.0.0.1:8443/files/mnist.tar",
    "sha256": "ab" * 32,
    "runtime": "r/tensorflow@sha256:5",
    "code": "r/workloads@sha256:6",
    "authority": "PEM",
}


def described(**changes: str) -> tuple[Training, Import]:
    run = training(data={**DATA, **changes}, logs={"claim": "training"})
    assert run.data_import
    return run, run.data_import


def pod(phase: str, **labels: str) -> dict[str, Any]:
    meta = {"name": "mnist-import-abcde", "labels": {**job(*described())["spec"]["template"]["metadata"]["labels"]}}
    return {"metadata": {**meta, "creationTimestamp": "1"}, "status": {"phase": phase}}


class Cluster(ApiServer):
    """Runs a Job as soon as it is created: to an end, with a log."""

    def __init__(self, condition: str, log: str, objects: dict[str, Any] | None = None) -> None:
        super().__init__({f"{POD}/log": lambda _: log, **(objects or {})})
        self.condition, self.open = condition, False

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        if method == "POST" and path.endswith("/jobs"):
            self.open = POLICY in self.objects
            body = {**body, "status": {"conditions": [{"type": self.condition, "status": "True"}]}}
            self.objects[POD] = pod("Succeeded" if self.condition == "Complete" else "Failed")
        return super().__call__(method, path, query, body, kind)


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)


def bring(server: ApiServer, said: Callable[[str], None] = print) -> None:
    DataImport(Api(server), *described(), said).bring()


def test_an_import_leaves_nothing_but_the_data() -> None:
    said: list[str] = []
    server = Cluster("Complete", '{"event": "end", "result": "imported", "bytes": 54950000}\n')
    bring(server, said.append)
    assert said == ["data of mnist: imported, 55 MB"]
    assert server.open
    assert not {JOB, POLICY, f"/api/v1{SPACE}/configmaps/mnist-import"} & server.objects.keys()


def test_a_failure_is_told_in_the_words_of_the_program_and_closes_the_way_out() -> None:
    error = {"event": "error", "message": "x has the sha256 1, not 2.", "remedy": "Compare it."}
    server = Cluster("Failed", f"{json.dumps(error)}\n")
    with pytest.raises(TrainyardError, match=r"onto the claim datasets: x has the sha256 1, not 2. Compare it."):
        bring(server)
    assert JOB not in server.objects and POLICY not in server.objects


def test_a_pod_that_does_not_start_ends_the_wait() -> None:
    warning = {
        "metadata": {"creationTimestamp": "1"}, "type": "Warning", "message": "no room",
        "involvedObject": {"name": "mnist-import-abcde"},
    }  # fmt: skip
    server = ApiServer({POD: pod("Pending"), f"/api/v1{SPACE}/events": {"items": [warning]}})
    with pytest.raises(TrainyardError, match="its pod is waiting: Pending; no room"):
        bring(server)
    assert JOB not in server.objects


def test_an_import_that_is_under_way_is_followed_and_another_one_removed() -> None:
    live = {**job(*described()), "status": {}}
    server = ApiServer({JOB: live})
    follow = DataImport(Api(server), *described(), print)
    follow._give_way_to_none()
    assert JOB in server.objects
    server.objects[JOB] = {**job(*described(sha256="cd" * 32)), "status": {}}
    follow._give_way_to_none()
    assert JOB not in server.objects


@pytest.mark.parametrize("theirs", [{}, {"sha256": "cd" * 32}])
def test_one_of_two_imports_at_once_wins_and_the_other_says_so(theirs: dict[str, str]) -> None:
    class Raced(ApiServer):
        """Somebody else removes the Job that is followed, and makes one for something else."""

        looks = 0

        def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
            if method == "GET" and path == JOB and JOB in self.objects:
                self.looks += 1
                if self.looks == 3:
                    del self.objects[JOB]
                    if theirs:
                        self.objects[JOB] = {**job(*described(**theirs)), "status": {}}
                        self.objects[JOB]["metadata"]["uid"] = "theirs"
            return super().__call__(method, path, query, body, kind)

    server = Raced()
    with pytest.raises(TrainyardError, match=r"Another call is importing .*, and that import continues") as lost:
        bring(server)
    assert "Run this again" in lost.value.remedy
    assert POLICY in server.objects, "the other one needs it"
    assert (JOB in server.objects) == bool(theirs)


def test_an_import_of_something_else_that_came_first_is_left_to_itself() -> None:
    class First(ApiServer):
        def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
            if method == "POST":
                self.objects[JOB] = {**job(*described(sha256="cd" * 32)), "status": {}}
                self.objects[JOB]["metadata"]["uid"] = "theirs"
            return super().__call__(method, path, query, body, kind)

    server = First()
    with pytest.raises(TrainyardError, match="Another call is importing"):
        bring(server)
    assert JOB in server.objects and POLICY in server.objects


def test_only_the_job_may_go_out_and_only_to_its_server() -> None:
    policy, authority = around(*described())
    (egress, _) = policy["spec"]["egress"]
    assert egress == {
        "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [{"port": 8443, "protocol": "TCP"}],
    }  # fmt: skip
    wanted = job(*described())
    labels = wanted["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"] == labels
    assert labels["trainyard.dev/run"] == "mnist.import"
    assert "trainyard.dev/run" not in wanted["metadata"]["labels"]
    assert authority["data"] == {"ca.crt": "PEM"}
    (only,) = around(*described(url="http://example.org/x", authority=""))
    assert only["spec"]["egress"][0]["ports"] == [{"port": 80, "protocol": "TCP"}]
    assert len(only["spec"]["egress"][0]["to"]) == 2


def test_the_run_reads_the_folder_and_cannot_write_it() -> None:
    run, _ = described()
    container = pod_template(run, "worker", "20261121T120000Z-0001")["spec"]["containers"][0]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "data"]
    assert mount == {"name": "data", "mountPath": "/data", "subPath": "mnist", "readOnly": True}
    assert spec_hash(run) != spec_hash(described(sha256="cd" * 32)[0])


def test_it_comes_before_the_submission_and_needs_its_claim() -> None:
    def plan(server: ApiServer) -> list[str]:
        run = Run(Api(server), described()[0], Settings(log_dir="/tmp", isolation_probe=False), Progress(None))
        return [step.what for step in run.plan(wait=False).steps]

    steps = plan(ApiServer({CLAIM: {"metadata": {"name": "datasets"}}, FILES: {"metadata": {"name": "training"}}}))
    assert steps[-2] == "Import https://10.0.0.1:8443/files/mnist.tar onto the claim datasets as mnist"
    assert steps[-1].startswith("Submit training mnist")
    with pytest.raises(TrainyardError, match="there is no claim trainings/datasets"):
        plan(ApiServer({FILES: {"metadata": {"name": "training"}}}))


def test_the_wait_has_a_limit() -> None:
    assert job(*described())["spec"]["activeDeadlineSeconds"] == data_import.IMPORT_SECONDS
