"""A service: made once with a token that nobody sees, left alone while it runs, found again by the same call."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from trainyard.core.errors import TrainyardError
from trainyard.core.progress import Progress
from trainyard.kube.api import Api
from trainyard.trainings.jobset import run_object
from trainyard.trainings.model import Training
from trainyard.trainings.objects import network_policies
from trainyard.trainings.run import Settings
from trainyard.trainings.service import Service
from trainyard.trainings.stop import Stop

SPACE = "namespaces/trainings"
DEPLOYMENT = f"/apis/apps/v1/{SPACE}/deployments/mnist"
SECRET = f"/api/v1/{SPACE}/secrets/mnist-token"
CLAIM = f"/api/v1/{SPACE}/persistentvolumeclaims/training"
RECORD = f"/api/v1/{SPACE}/configmaps/mnist-result"


class Cluster(ApiServer):
    """Rolls a Deployment out as soon as it is applied; its Service serves."""

    def _get(self, path: str, query: list[tuple[str, str]]) -> tuple[int, str]:
        if path == DEPLOYMENT and DEPLOYMENT in self.objects:
            ready = {
                "observedGeneration": 1,
                "updatedReplicas": 1,
                "replicas": 1,
                "availableReplicas": 1,
                "readyReplicas": 1,
            }
            self.objects[DEPLOYMENT]["metadata"]["generation"] = 1
            self.objects[DEPLOYMENT]["status"] = ready
        if path.endswith("/endpointslices"):
            return 200, json.dumps(
                {"items": [{"metadata": {"name": "e"}, "endpoints": [{"conditions": {"ready": True}}]}]}
            )
        return super()._get(path, query)


def notebook(**changes: Any) -> Training:
    return training(topology="service", logs={"claim": "training"}, port=8888, **changes)


def service(server: ApiServer, folder: Path, **changes: Any) -> Service:
    server.objects.setdefault(CLAIM, {"metadata": {"name": "training"}})
    settings = Settings(str(folder), token_dir=str(folder / "tokens"))
    return Service(Api(server), notebook(**changes), settings, Progress(None))


def made(folder: Path) -> Cluster:
    server = Cluster()
    service(server, folder).plan().execute()
    return server


def test_it_is_a_deployment_behind_a_token_that_is_on_the_controller(tmp_path: Path) -> None:
    server = Cluster()
    one = service(server, tmp_path)
    plan = one.plan()
    plan.execute()
    token = base64.b64decode(server.objects[SECRET]["data"]["token"]).decode()
    file = tmp_path / "tokens" / "trainings-mnist"
    assert len(token) >= 43
    assert file.read_text() == f"{token}\n"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert token not in f"{one.result} {plan.before} {plan.after} {[step.what for step in plan.steps]}"
    assert "port-forward service/mnist 8888" in one.result["reach"]
    pod = server.objects[DEPLOYMENT]["spec"]["template"]["spec"]
    (env,) = [each for each in pod["containers"][0]["env"] if each["name"] == "TOKEN"]
    assert env["valueFrom"] == {"secretKeyRef": {"name": "mnist-token", "key": "token"}}
    assert pod["restartPolicy"] == "Always"
    assert json.loads(server.objects[RECORD]["data"]["result.json"])["result"] == "running"


def test_the_same_call_again_changes_nothing_and_keeps_the_token(tmp_path: Path) -> None:
    server = made(tmp_path)
    before = server.objects[SECRET]
    again = service(server, tmp_path)
    assert [step.what for step in again.plan().steps] == []
    assert again.result["reach"]
    assert server.objects[SECRET] == before


def test_a_token_file_that_others_could_read_is_written_anew(tmp_path: Path) -> None:
    server = made(tmp_path)
    file = tmp_path / "tokens" / "trainings-mnist"
    file.chmod(0o644)
    service(server, tmp_path).plan().execute()
    assert file.stat().st_mode & 0o777 == 0o600


def test_one_that_runs_by_another_description_is_left_alone_until_it_may_be_ended(tmp_path: Path) -> None:
    server = made(tmp_path)
    other = {"limits": {"cpu": "1", "memory": "4Gi"}}
    one = service(server, tmp_path, **other)
    one.plan().execute()
    assert "was left unchanged" in one.left_alone
    assert server.objects[DEPLOYMENT]["metadata"]["annotations"] == _annotations(server)
    one = service(server, tmp_path, **other)
    one.plan(may_end=True).execute()
    limits = server.objects[DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert (one.left_alone, limits["memory"]) == ("", "4Gi")


def _annotations(server: ApiServer) -> dict[str, str]:
    attempt = server.objects[DEPLOYMENT]["metadata"]["annotations"]["trainyard.dev/attempt"]
    return dict(run_object(notebook(), attempt)["metadata"]["annotations"])


def test_one_that_does_not_answer_says_what_its_pod_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    labels = {"trainyard.dev/run": "mnist", "trainyard.dev/role": "server"}
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    pod = {
        "metadata": {"name": "mnist-abc", "uid": "1", "creationTimestamp": "1", "labels": labels},
        "status": {"containerStatuses": [{"state": {"waiting": waiting}}]},
    }
    server = ApiServer({f"/api/v1/{SPACE}/pods/mnist-abc": pod})
    with pytest.raises(TrainyardError, match="mnist-abc is waiting ImagePullBackOff: no such image"):
        service(server, tmp_path, start_timeout=1).plan().execute()


def test_nobody_is_admitted_to_it_by_the_network() -> None:
    own = network_policies(notebook())[1]["spec"]
    assert own["ingress"] == []
    assert [rule["ports"][0]["port"] for rule in own["egress"]] == [53]


def test_a_stop_ends_it_and_deletes_what_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = made(tmp_path)
    Stop(Api(server), "mnist", str(tmp_path), print).plan().execute()
    assert DEPLOYMENT not in server.objects and SECRET in server.objects
    assert json.loads(server.objects[RECORD]["data"]["result.json"])["result"] == "stopped"
    stop = Stop(Api(server), "mnist", str(tmp_path), print)
    monkeypatch.setattr(stop, "_empty", lambda files: None)
    stop.plan(delete=True).execute()
    left = [path for path in server.objects if "mnist" in path]
    assert left == []


def test_what_is_removed_with_all_of_it(tmp_path: Path) -> None:
    server = made(tmp_path)
    service(server, tmp_path).remove_plan().execute()
    assert [path for path in server.objects if "mnist" in path] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topology": "service", "token": ""}, "token is missing"),
        ({"topology": "service", "token": "A-B"}, "token is not a valid name"),
        ({"token": "TOKEN"}, "only a service has a token"),
    ],
)
def test_a_token_that_cannot_be(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainyardError, match=said):
        training(**changes)
