"""`trainyard logs`: the right pod, every line once, across replaced pods and broken connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.program.test_runs import PODS, jobset, kept, pod
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api, KubeError
from trainyard.kube.pod_log import Line
from trainyard.trainings.run_logs import Place, find, follow, read

PATH = "/api/v1/namespaces/trainings/pods/"
JOBSET = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets/wide"


def server(*pods: dict[str, Any], ended: str = "") -> ApiServer:
    objects: dict[str, Any] = {f"{PATH}{each['metadata']['name']}": each for each in pods}
    return ApiServer({**objects, JOBSET: jobset(ended)})


def keep(folder: Path, attempt: str, name: str, text: str) -> None:
    path = folder / "trainings-wide" / attempt / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("role", "place"), [("", "chief-0"), ("worker-1", "worker-1"), ("worker", "worker-0"), ("ps", "ps-0")]
)
def test_which_process(role: str, place: str, tmp_path: Path) -> None:
    assert find(Api(server(*PODS)), "wide", role, str(tmp_path)) == Place("wide", "trainings", place)


def test_what_decides_is_said_by_the_run_itself(tmp_path: Path) -> None:
    there = server(*PODS)
    there.objects[JOBSET]["metadata"]["annotations"]["trainyard.dev/deciding"] = "ps-0"
    assert find(Api(there), "wide", "", str(tmp_path)).place == "ps-0"


def test_a_run_of_which_only_logs_are_left_without_a_chief(tmp_path: Path) -> None:
    there = server()
    del there.objects[JOBSET]
    there.objects["/api/v1/namespaces/trainings/configmaps/wide-result"] = kept({"result": "stopped"})
    with pytest.raises(TrainyardError, match="The run wide has no logs"):
        find(Api(there), "wide", "", str(tmp_path))
    keep(tmp_path, "20261122T000000Z", "wide-worker-0-0-bbbbb", "one\n")
    assert find(Api(there), "wide", "", str(tmp_path)).place == "worker-0"


@pytest.mark.parametrize(
    ("run", "role", "says"),
    [
        ("narrow", "", "There is no run narrow."),
        ("wid", "", "There is no run wid."),
        ("../etc", "", "There is no run ../etc."),
        ("wide", "worker-7", "The run wide has no worker-7 now."),
    ],
)
def test_what_is_not_there(run: str, role: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match=says.replace(".", r"\.")):
        find(Api(server(*PODS)), run, role, str(tmp_path))


def test_a_run_whose_pods_are_gone_is_read_from_the_controller(tmp_path: Path) -> None:
    keep(tmp_path, "20261101T000000Z", "wide-worker-0-1-aaaaa", "older attempt\n")
    keep(tmp_path, "20261122T000000Z", "wide-worker-0-1-bbbbb", "one\ntwo\n")
    keep(tmp_path, "20261122T000000Z", "wide-chief-0-0-ccccc", "other\n")
    # The chief's pod stays when the run has ended, the others' do not.
    api = Api(server(PODS[0]))
    place = find(api, "wide", "worker-1", str(tmp_path))
    assert texts(read(api, place, str(tmp_path))) == ["one", "two"]


@pytest.mark.parametrize("name", ["wide-6b7f5c4d8b-x7k2p", "wide-5948765987-bbbbb"])
def test_a_service_that_was_stopped_is_read_from_the_controller(tmp_path: Path, name: str) -> None:
    there = server()
    del there.objects[JOBSET]
    there.objects["/api/v1/namespaces/trainings/configmaps/wide-result"] = kept({"result": "stopped"})
    keep(tmp_path, "20261122T000000Z", name, "one\n")
    place = find(Api(there), "wide", "", str(tmp_path))
    assert place.place == "server-0"
    assert texts(read(Api(there), place, str(tmp_path))) == ["one"]


def line(second: int, text: str) -> bytes:
    return f"2026-11-22T12:00:{second:02d}.000000000Z {text}\n".encode()


def texts(lines: Iterator[Line]) -> list[str]:
    return [each.text.decode() for each in lines]


def test_following_goes_on_after_a_broken_connection_and_with_the_next_pod(tmp_path: Path) -> None:
    first, second = pod("worker", 1, {"terminated": {"exitCode": 42}}, when=1), pod("worker", 1, when=9)
    first["status"]["phase"] = "Failed"
    there = server(first)
    calls: list[tuple[str, str]] = []

    def stream(path: str, query: list[tuple[str, str]]) -> Iterator[bytes]:
        name, since = path.split("/")[-2], dict(query).get("sinceTime", "")
        calls.append((name, since))
        if len(calls) == 1:
            yield line(1, "one")
            raise KubeError("broken", status=0)
        if name.endswith("-1"):
            yield from (line(1, "one"), line(2, "two"))
        else:
            yield line(3, "three")
            there.objects[f"{PATH}{name}"]["status"]["phase"] = "Succeeded"
            there.objects[JOBSET] = jobset("Completed")

    waits: list[str] = []

    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if waits:
            there.objects[f"{PATH}wide-worker-0-1-9"] = second

    found = texts(follow(Api(there, stream), Place("wide", "trainings", "worker-1"), waits.append, sleep))
    assert found == ["one", "two", "three"]
    assert calls == [
        ("wide-worker-0-1-1", ""),
        ("wide-worker-0-1-1", "2026-11-22T12:00:01.000000000Z"),
        ("wide-worker-0-1-9", ""),
    ]
    assert waits == ["waiting for worker-1"]
    # Neither a connection that is refused nor a place that is empty is asked for without a pause.
    assert len(naps) == 2


@pytest.mark.parametrize("status", [404, 500])
def test_a_pod_that_goes_while_its_connection_breaks_ends_nothing(status: int) -> None:
    there = server(PODS[0])
    calls: list[str] = []

    def stream(path: str, query: list[tuple[str, str]]) -> Iterator[bytes]:
        calls.append(path)
        if len(calls) == 1:
            raise KubeError("gone", status=status)
        yield line(1, "one")
        there.objects[f"{PATH}wide-chief-0-0-0"]["status"]["phase"] = "Succeeded"

    def sleep(_: float) -> None:
        there.objects[JOBSET] = jobset("Completed")

    found = texts(follow(Api(there, stream), Place("wide", "trainings", "chief-0"), lambda _: None, sleep))
    assert found == {404: [], 500: ["one"]}[status]


def test_a_refusal_ends_the_following(tmp_path: Path) -> None:
    def stream(path: str, query: list[tuple[str, str]]) -> Iterator[bytes]:
        raise KubeError("forbidden", status=403)
        yield

    with pytest.raises(KubeError, match="forbidden"):
        list(follow(Api(server(*PODS), stream), Place("wide", "trainings", "ps-0"), print, lambda _: None))
