"""The last words of pods that end with their run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from tests.unit.training.scripted import Ticking
from tests.unit.training.test_run import container, pod
from trainyard.kube.api import Api
from trainyard.trainings.kept_logs import KeptLogs
from trainyard.trainings.pod_logs import PodLogs
from trainyard.trainings.watch import RunView

PODS = "/api/v1/namespaces/trainings/pods"
NAME = "mnist-ps-0-0-abcde"
RUNS = pod(NAME, "ps", {"phase": "Running", **container({"running": {}})})
STOPS = {**RUNS, "metadata": {**RUNS["metadata"], "deletionTimestamp": "2026-11-21T12:00:09Z"}}
ENDED = {**STOPS, "status": {"phase": "Failed", **container({"terminated": {"exitCode": 143}})}}


class Talking(ApiServer):
    """One pod, which says a word more at each look of the follower."""

    def __init__(self) -> None:
        super().__init__({f"{PODS}/{NAME}": RUNS})
        self.objects |= {f"{PODS}/{NAME}/log": self._log, PODS: self._pods}
        self.change: dict[str, Any] | None = None
        self.word = self.read = 0

    def _pods(self, query: list[tuple[str, str]]) -> str:
        self.word += 1
        if ("watch", "1") not in query:
            return json.dumps({"metadata": {"resourceVersion": "5"}, "items": [RUNS]})
        change, self.change = self.change, None
        # The Go encoder leaves U+0085 as it is.
        found = {"type": "MODIFIED", "object": change, "note": "\x85"}
        return json.dumps(found, ensure_ascii=False) + "\n" if change else ""

    def _log(self, query: list[tuple[str, str]]) -> str:
        self.read += 1
        return "".join(f"2026-11-21T12:00:00.{number:09}Z word {number}\n" for number in range(1, self.word + 1))


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ((None, STOPS, None, None, ENDED, None, None), [0, 1, 2, 3, 4, 5, 5]),
        ((None, None, {**RUNS, "status": ENDED["status"]}, None, None), [0, 0, 1, 2, 2]),
    ],
)
def test_a_pod_that_stops_is_read_at_each_look_and_once_more_when_it_has_ended(
    tmp_path: Path, changes: list[Any], reads: list[int]
) -> None:
    server = Talking()
    logs = PodLogs(Api(server), KeptLogs(str(tmp_path), "trainings-mnist", "20261121T120000Z-0001"))
    view = RunView(Api(server), training(), logs, Ticking())
    found = []
    for change in changes:
        server.change = change
        view.refresh()
        found.append(server.read)
    assert found == reads
    assert logs.kept.text(NAME) == "".join(f"word {number}\n" for number in range(1, len(changes)))


@pytest.mark.parametrize("status", [500, 503])
def test_a_node_that_does_not_answer_is_asked_at_changes_alone(tmp_path: Path, status: int) -> None:
    server = Talking()
    asked = 0

    class Counted(Api):
        def log_pieces(self, *args: Any, **named: Any) -> Any:
            nonlocal asked
            asked += 1
            return super().log_pieces(*args, **named)

    server.objects[f"{PODS}/{NAME}/log"] = status
    logs = PodLogs(Counted(server), KeptLogs(str(tmp_path), "trainings-mnist", "20261121T120000Z-0001"))
    view = RunView(Api(server), training(), logs, Ticking())
    for change in (None, STOPS, None, None, None):
        server.change = change
        view.refresh()
    assert asked == 1 and logs.kept.paths == []
