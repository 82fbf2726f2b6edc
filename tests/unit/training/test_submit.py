"""Submitting: one of two wins, what cannot start is refused, and an answer that is lost does no harm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from tests.unit.training.scripted import Cluster
from trainyard.core.errors import TrainyardError
from trainyard.core.progress import Progress
from trainyard.kube.api import Api
from trainyard.trainings import record
from trainyard.trainings.jobset import run_object
from trainyard.trainings.objects import result_record
from trainyard.trainings.run import Run, Settings
from trainyard.trainings.run_state import live_object
from trainyard.trainings.submit import submit

FIRST = "20261121T120000Z-0001"
EARLIER = "20261121T110000Z-0000"

TRAINING = training(logs={"claim": "training"})
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets"
RECORD = "/api/v1/namespaces/trainings/configmaps/mnist-result"
CLAIM = "/api/v1/namespaces/trainings/persistentvolumeclaims/training"
SETTINGS = Settings(log_dir="/tmp", isolation_probe=False)


def live(attempt: str = EARLIER, uid: str = "old", state: str = "", **changes: Any) -> dict[str, Any]:
    obj = json.loads(json.dumps(run_object(training(logs={"claim": "training"}, **changes), attempt)))
    obj["metadata"]["uid"] = uid
    return {**obj, "status": {"terminalState": state} if state else {}}


def recorded(result: str, **changes: Any) -> dict[str, Any]:
    return result_record(training(logs={"claim": "training"}, **changes), {"result": result, "attempt": EARLIER})


def run(server: ApiServer, **changes: Any) -> Run:
    server.objects.setdefault(CLAIM, {"metadata": {"name": "training"}})
    return Run(Api(server), training(logs={"claim": "training"}, **changes), SETTINGS, Progress(None))


def test_a_run_is_created_and_remembered_as_running() -> None:
    server = ApiServer()
    attempt = submit(Api(server), TRAINING, None, "fresh", print, log_dir="/nonexistent")
    made = server.objects[f"{SETS}/mnist"]
    assert made["metadata"]["annotations"]["trainyard.dev/attempt"] == attempt
    assert made["metadata"]["annotations"]["trainyard.dev/deciding"] == "chief-0"
    result = json.loads(server.objects[RECORD]["data"]["result.json"])
    assert (result["result"], result["attempt"], result["workload"]) == ("running", attempt, "mnist_ps")
    assert result["files"]["folder"] == "/logs/mnist"


def test_the_second_of_two_submissions_says_whose_run_goes_on() -> None:
    server = ApiServer()
    first = submit(Api(server), TRAINING, None, "auto", print, log_dir="/nonexistent")
    with pytest.raises(TrainyardError, match=f"attempt {first}"):
        submit(Api(server), TRAINING, None, "auto", print, log_dir="/nonexistent")
    assert json.loads(server.objects[RECORD]["data"]["result.json"])["attempt"] == first


def test_a_run_that_has_taken_the_place_of_the_one_to_be_ended_is_not_ended() -> None:
    server = ApiServer({f"{SETS}/mnist": live("20261121T130000Z-0002", uid="new")})
    with pytest.raises(TrainyardError, match="attempt 20261121T130000Z-0002"):
        submit(Api(server), TRAINING, live(uid="old"), "auto", print, log_dir="/nonexistent")
    assert f"{SETS}/mnist" in server.objects


def test_the_run_before_is_deleted_first_and_its_logs_are_kept(tmp_path: Path) -> None:
    script = [(0, "start"), (0, "say", "chief-0", {"event": "x"}), (0, "exit", "chief-0", 3), (0, "end", "Failed")]
    server = Cluster(TRAINING, script)
    before = live_object(Api(server), "trainings", "mnist")
    arguments = {"log_dir": str(tmp_path), "clock": server.clock}
    attempt = submit(Api(server), TRAINING, before, "auto", print, **arguments)
    logs = [path.read_text() for path in (tmp_path / "trainings-mnist" / FIRST).glob("mnist-chief-0-0-*.log")]
    assert len(logs) == 1 and '"event": "x"' in logs[0]
    assert server.objects[f"{SETS}/mnist"]["metadata"]["annotations"]["trainyard.dev/attempt"] == attempt


def test_a_lost_answer_to_the_creation_is_made_good() -> None:
    class Lossy(ApiServer):
        lost = False

        def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
            answer = super().__call__(method, path, query, body, kind)
            if method == "POST" and not self.lost:
                self.lost = True
                return 503, "{}"
            return answer

    server = Lossy()
    attempt = submit(Api(server), TRAINING, None, "auto", print, log_dir="/nonexistent")
    assert json.loads(server.objects[RECORD]["data"]["result.json"])["attempt"] == attempt


def test_without_waiting_the_plan_ends_with_the_submission() -> None:
    server = ApiServer()
    one = run(server)
    plan = one.plan(wait=False)
    assert plan.steps[-1].what == "Submit training mnist: 200 steps, 1 chief, 1 ps, 2 worker"
    plan.execute()
    assert one.result["result"] == "running"
    assert run(server).plan(wait=False).steps == []


@pytest.mark.parametrize(
    ("objects", "arguments", "last"),
    [
        ({RECORD: recorded("passed")}, {}, ""),
        ({RECORD: recorded("passed")}, {"resume": "fresh"}, "Run training mnist"),
        ({RECORD: recorded("passed"), f"{SETS}/mnist": live(state="Completed")}, {}, ""),
        ({f"{SETS}/mnist": live(state="Completed")}, {"resume": "fresh"}, "Run training mnist"),
        ({RECORD: recorded("running"), f"{SETS}/mnist": live()}, {"resume": "fresh"}, "Wait for training mnist"),
        # Who submitted it did not live to remember it.
        ({f"{SETS}/mnist": live()}, {"wait": False}, "Record that the training mnist is running"),
        ({RECORD: recorded("running"), f"{SETS}/mnist": live()}, {"wait": False}, ""),
        # A record of what did not succeed keeps nobody from trying again.
        ({RECORD: recorded("failed")}, {}, "Run training mnist"),
        ({RECORD: recorded("stopped")}, {}, "Run training mnist"),
        ({RECORD: recorded("running")}, {}, "Run training mnist"),
        ({RECORD: recorded("running"), f"{SETS}/mnist": live()}, {}, "Wait for training mnist"),
        ({RECORD: recorded("running"), f"{SETS}/mnist": live(state="Completed")}, {"wait": False}, "Wait for training"),
    ],
)
def test_what_is_done_about_a_run_of_which_something_is_there(
    objects: dict[str, Any], arguments: dict[str, Any], last: str
) -> None:
    steps = [step.what for step in run(ApiServer(objects)).plan(**arguments).steps]
    mine = [step for step in steps if "training mnist" in step]
    assert [step for step in mine if step.startswith(last)] == mine and bool(mine) == bool(last), steps


def test_a_success_is_on_record_under_the_description_that_the_site_has_now() -> None:
    server = ApiServer({RECORD: recorded("passed")})
    one = run(server, description_hash="new")
    plan = one.plan()
    assert [step.what for step in plan.steps if "training mnist" in step.what] == [
        "Record the description of the training mnist"
    ]
    plan.execute()
    kept = json.loads(server.objects[RECORD]["data"]["result.json"])
    assert (kept["result"], kept["attempt"], kept["description_hash"]) == ("passed", EARLIER, "new")
    assert one.result["description_hash"] == "new"
    again = run(server, description_hash="new").plan()
    assert not [step.what for step in again.steps if "training mnist" in step.what]
    assert record.submitted(training(description_hash="new"), "a")["description_hash"] == "new"


@pytest.mark.parametrize(
    "there", [{RECORD: recorded("failed", workload="cnn_ps")}, {f"{SETS}/mnist": live(workload="cnn_ps")}]
)
def test_a_name_of_another_workloads_run_is_refused(there: dict[str, Any]) -> None:
    server = ApiServer(there)
    with pytest.raises(TrainyardError, match="belongs to the workload cnn_ps, and not to mnist_ps") as refused:
        run(server).plan()
    assert "-e run=mnist -e confirm=mnist -e delete=true" in refused.value.remedy
    assert server.writes == []


def node(name: str, gpus: int) -> dict[str, Any]:
    return {f"/api/v1/nodes/{name}": {"metadata": {"name": name}, "status": {"allocatable": {"nvidia.com/gpu": gpus}}}}


def test_more_gpus_than_any_node_has_are_refused_with_the_largest() -> None:
    server = ApiServer({**node("a", 2), **node("b", 4)})
    with pytest.raises(TrainyardError, match="a pod of worker requests 8 GPUs, but b has the most, 4"):
        run(server, topology="multi_worker", worker={"gpus": 8}).plan()
    assert run(server, topology="multi_worker", worker={"gpus": 4}).plan().changed
    with pytest.raises(TrainyardError, match="no node has any"):
        run(ApiServer(), worker={"gpus": 1}).plan()


def test_a_claim_for_its_files_that_is_not_there_is_named_with_its_variable() -> None:
    server = ApiServer()
    one = Run(Api(server), TRAINING, SETTINGS, Progress(None))
    with pytest.raises(TrainyardError, match=r"no claim trainings/training for its files \(workloads_logs_claim\)"):
        one.plan()
    assert server.writes == []
    # A check run comes before the role that makes it.
    assert Run(Api(server), TRAINING, replace(SETTINGS, planning=True), Progress(None)).plan().changed


def test_a_secret_that_is_not_there_is_named() -> None:
    wanted = {"env": {"KEY": {"secret": "mine", "key": "token"}}}
    with pytest.raises(TrainyardError, match="there is no Secret trainings/mine"):
        run(ApiServer(), worker=wanted).plan()
    secret = {"metadata": {"name": "mine"}, "data": {"other": "eA=="}}
    server = ApiServer({"/api/v1/namespaces/trainings/secrets/mine": secret})
    with pytest.raises(TrainyardError, match="the key token is missing in the Secret trainings/mine"):
        run(server, worker=wanted).plan()
    secret["data"] = {"token": "eA=="}
    assert run(ApiServer({"/api/v1/namespaces/trainings/secrets/mine": secret}), worker=wanted).plan().changed
