"""Tests that the attempts of the red team's operator are valid, and that harm is detected."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

# The console is the project's package, not the program in this folder.
import red
import red_console
import red_guards
import red_planted
import yaml
from red_attempts import POLICY, RIGHTS, There, attempts

from tests.conftest import ROOT
from tests.unit.apiserver import ApiServer
from tests.unit.console import consoles
from tests.unit.training.test_hostile_attempts import Stopping, stop
from trainyard.kube.api import Api
from trainyard.trainings import record, run_index
from trainyard.trainings.run_state import attempt_of

THERE = There(f"mirror.example.org:5000/trainyard/tensorflow@sha256:{'1' * 64}", "red-record-result")
TRIES = attempts(THERE)
JOBS = "/apis/batch/v1/namespaces/trainings/jobs"
RECORD = "/api/v1/namespaces/trainings/configmaps/red-record-result"
VOLUME = f"/api/v1/persistentvolumes/{red_planted.VOLUME}"


def test_there_are_thirty_attempts_and_each_has_a_name_of_its_own() -> None:
    assert len(TRIES) == len({one.name for one in TRIES}) >= 30
    assert {one.guard for one in TRIES} == {POLICY, RIGHTS} == set(red_guards.OFF)
    assert THERE.registry == "mirror.example.org:5000/trainyard"


@pytest.mark.parametrize("one", [each for each in TRIES if each.guard == POLICY], ids=lambda one: one.name)
def test_a_refusal_is_one_that_a_policy_has(one: Any) -> None:
    texts = [(ROOT / f"roles/dashboard/templates/{name}_policy.yaml.j2").read_text() for name in ("pods", "records")]
    words = " ".join(" ".join(texts).replace("{{ __dashboard_grace_limit }}", "3600").split())
    assert re.search(one.said, words)


def answering(*answers: tuple[int, str]) -> Api:
    replies = iter(answers)
    return Api(lambda *_: next(replies))


def test_an_attempt_has_to_be_refused_by_its_own_guard() -> None:
    one = TRIES[0]
    good = json.dumps({"message": f"denied request: {one.said} of the system"})
    assert red_guards.refused(answering((403, good)), [one]) == []
    assert "another guard" in red_guards.refused(answering((403, '{"message": "quota"}')), [one])[0]
    assert "success" in red_guards.refused(answering((201, "{}")), [one])[0]
    assert red_guards.accepted(answering((201, "{}")), [one]) == []
    assert "403" in red_guards.accepted(answering((403, good)), [one])[0]
    proxy = next(each for each in TRIES if "/proxy/" in each.path)
    assert red_guards.accepted(answering((503, "no endpoints")), [proxy]) == []


def test_guards_are_on_again_as_they_were() -> None:
    base = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    served = {"resources": [{"kind": red_guards.BINDING, "name": base.rpartition("/")[2], "namespaced": False}]}
    spec = {"policyName": "x", "validationActions": ["Deny"]}
    made = {f"{base}/{name}": {"metadata": {"name": name, "uid": "u"}, "spec": spec} for name in red_guards.BINDINGS}
    server = ApiServer({base.rpartition("/")[0]: served, **made})
    stand: Any = mock.Mock(api=Api(server))
    on = red_guards.policies_off(stand)
    assert not server.objects.keys() & made.keys()
    on()
    assert all(server.objects[path]["spec"] == spec for path in made)


def test_what_is_planted_is_a_run_to_our_programs_and_harmless() -> None:
    job = red_planted.hostile_run(THERE, red_planted.PATH, "/etc/cron.d")
    assert attempt_of(job) == "unknown"
    assert sum(map(len, job["metadata"]["annotations"].values())) < 2**18, "Kubernetes accepts no more"
    server = ApiServer({f"{JOBS}/red-path": job, RECORD: red_planted.record("trainings")})
    assert {name for _, name in run_index.runs(Api(server))} == {"red-path", "red-record"}
    assert run_index.LABELS.partition("=")[0] not in red_planted.record("elsewhere")["metadata"]["labels"]


@pytest.mark.parametrize("name", red_planted.hostile_records())
def test_a_hostile_record_is_read(name: str) -> None:
    data = red_planted.hostile_records()[name]
    assert set(data) <= {"result.json", "manifest.json"} and len(json.dumps(data)) < 2**20
    kept = record.read({"metadata": {"name": "red-record-result"}, "data": data})
    assert "files" not in kept and kept.get("attempt", "unknown") == "unknown"


def test_without_its_gate_an_annotation_is_a_path(tmp_path: Path) -> None:
    stop(str(tmp_path / "stolen"), tmp_path / "logs")
    assert not (tmp_path / "stolen").exists()
    with red.open_paths():
        stop(str(tmp_path / "stolen"), tmp_path / "logs")
    assert red.hashes(tmp_path / "stolen")


def test_without_its_comparison_a_deletion_takes_another_volume() -> None:
    def left(server: ApiServer, logs: str) -> bool:
        server.objects |= {RECORD: red_planted.record("trainings"), VOLUME: red_planted.of_others()[-1]}
        red_planted.stop_elsewhere(Api(server), "red-record", Path(logs), delete=True)
        return VOLUME in server.objects

    assert left(Stopping(), "/logs")
    with red_guards.open_volumes():
        assert not left(Stopping(), "/logs")


def test_without_its_gate_text_reaches_the_terminal(tmp_path: Path) -> None:
    stand: Any = mock.Mock(inventory=tmp_path)
    values = {"workloads_kubeconfig": "/x\x1b]52;c;x\x07", "site_dir": str(tmp_path)}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": values}}))
    said = red.open_program(stand, "trainings")
    assert "There is no kubeconfig" in said and red.amiss(said)


def test_changes_are_named() -> None:
    assert red.differences({"a": "1", "b": "1"}, {"b": "2", "c": "1"}) == ["a is gone", "b was changed", "c is new"]
    pod = {"kind": "Pod", "metadata": {"name": "x", "namespace": "kube-system", "uid": "u"}}
    states = {"containerStatuses": [{"restartCount": 2}]}
    mine = {**pod, "metadata": {"name": "y", "namespace": "trainings", "uid": "u"}}
    assert red.foreign([{**pod, "status": states}, mine]) == {"Pod kube-system/x": "u restarted 2 times"}


def test_logs_elsewhere_are_found(tmp_path: Path) -> None:
    for name in ("trainings-red-path/unknown/a.log", "trainings-mnist/x/b.log"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    assert red.strange_logs(tmp_path, ("red-path",), set()) == [str(tmp_path / "trainings-mnist/x/b.log")]


def test_faults_of_a_page() -> None:
    assert red_console.faults(200, b"<p>fine</p>\r\n", 0.1, "") == []
    assert len(red_console.faults(500, red_console.MARKUP.encode() + b"\x1b", 9.0, "")) == 4
    assert "NaN is no number" in red_console.faults(200, b'{"loss": NaN}', 0.1, "/api/v1")[0]


def test_a_visitor_logs_in_and_sees_every_page(tmp_path: Path) -> None:
    async def scenario(stand: consoles.Stand) -> None:
        visitor = red_console.Visitor(stand.url, tmp_path / "tls.crt")
        assert await asyncio.to_thread(visitor.log_in, "wrong") == 401
        assert (await asyncio.to_thread(visitor.pages))[0] == "/api/v1/runs is answered with 401"
        assert await asyncio.to_thread(visitor.log_in, "viewer") == 303
        wrong = await asyncio.to_thread(visitor.pages, "mnist")
        assert [each for each in wrong if "/cluster/" not in each] == []

    consoles.run(scenario, tmp_path)
