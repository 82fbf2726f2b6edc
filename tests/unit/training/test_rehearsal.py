"""A run is deleted for a new attempt only where the API server would take that one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from trainyard.kube.api import Api, KubeError
from trainyard.trainings.again import Again
from trainyard.trainings.jobset import run_object
from trainyard.trainings.run_index import Found
from trainyard.trainings.submit import submit

SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets"
LIVE = f"{SETS}/mnist"
POLICY = "ValidatingAdmissionPolicy 'trainyard-console-pods' denied request: Images are named by digest."
FULL = 'jobsets.jobset.x-k8s.io "mnist" is forbidden: exceeded quota: trainyard, requested: count/jobsets=1'


class Admission(ApiServer):
    """Admits no creation, as a policy does that came after the run: it answers before the name is looked at.

    :param said: why.
    :param dry_only: whether it refuses rehearsals alone, as a quota does that the deletion gives back to.
    """

    def __init__(self, said: str = POLICY, *, dry_only: bool = False, status: int = 403) -> None:
        there = json.loads(json.dumps(run_object(training(), "20261121T110000Z-0000")))
        there["metadata"]["uid"] = "old"
        super().__init__({LIVE: there})
        self._said, self._dry_only, self._status = said, dry_only, status
        self.bodies: list[Any] = []

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        answer = super().__call__(method, path, query, body, kind) if method != "POST" or not self._said else None
        if answer:
            return answer
        self.bodies.append(body)
        dry = ("dryRun", "All") in query
        if self._dry_only and not dry:
            return super().__call__(method, path, query, body, kind)
        self.calls.append(f"{'dry ' if dry else ''}{method} {path}")
        return self._status, json.dumps({"message": self._said})


def restart(server: ApiServer) -> None:
    Again(Api(server), Found("mnist", "trainings", server.objects[LIVE], None), print).plan(fresh=True).execute()


def resubmit(server: ApiServer) -> None:
    submit(Api(server), training(), server.objects[LIVE], "auto", print, log_dir="")


@pytest.mark.parametrize("again", [restart, resubmit])
def test_a_run_whose_next_attempt_is_refused_is_left_as_it_is(again: Any) -> None:
    server = Admission()
    before = json.dumps(server.objects[LIVE])
    with pytest.raises(KubeError, match=r"new attempt at the run mnist cannot be created.*named by digest") as refused:
        again(server)
    assert refused.value.status == 403 and "Nothing was changed" in refused.value.remedy
    assert json.dumps(server.objects[LIVE]) == before and server.writes == []
    # The policy is asked about the very object: its labels are compared with its name.
    (asked,) = server.bodies
    assert asked["metadata"]["name"] == "mnist" == asked["metadata"]["labels"]["trainyard.dev/run"]


@pytest.mark.parametrize("again", [restart, resubmit])
@pytest.mark.parametrize(("said", "status"), [("", 409), ('jobsets "mnist" already exists', 409), (FULL, 403)])
def test_a_name_or_a_quota_that_the_run_itself_takes_is_no_refusal(again: Any, said: str, status: int) -> None:
    server = Admission(said, dry_only=True, status=status)
    again(server)
    assert server.objects[LIVE]["metadata"]["uid"] != "old"
    kept = [call.partition(" /")[0] for call in server.calls if LIVE in call or call.endswith(f"POST {SETS}")]
    assert [call for call in kept if call != "GET"] == ["dry POST", "DELETE", "POST"]


def test_any_other_refusal_ends_no_run() -> None:
    server = Admission("a webhook takes no dry run", status=400)
    with pytest.raises(KubeError, match="status 400"):
        restart(server)
    assert server.writes == []
