"""Objects of an operator, however large and many, do not fill the console: a list is cut as it comes, and bounded."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.console.consoles import Stand, run
from tests.unit.console.large import PODS, pod
from tests.unit.console.test_lists import cluster, names
from tests.unit.training.samples import training
from trainyard.console import shares
from trainyard.console.lists import Watch
from trainyard.console.paged import Paged, slim
from trainyard.console.shares import FULL, Held, weight
from trainyard.kube.api import KubeError
from trainyard.kube.reads import listing
from trainyard.trainings import run_state
from trainyard.trainings.jobset import run_object
from trainyard.trainings.pod_places import decider
from trainyard.trainings.run_state import attempt_of, grace, hash_of, wanted_pods, workload_of

JOBS, MB = "/apis/batch/v1/jobs", 1_000_000
Make = Callable[[str], dict[str, Any]]


def job(name: str) -> dict[str, Any]:
    """A Job of 350 KB in a place where nothing was cut before."""
    notes = {"trainyard.dev/x": "x" * 150_000, "trainyard.dev/workload": "y" * 100_000}
    env = [{"name": "A", "value": "z" * 100_000}]
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "i", "env": env, "args": ["v" * 90_000]}]}}
    meta = {"name": name, "namespace": "team", "uid": name, "annotations": notes, "resourceVersion": "2"}
    return {"metadata": meta, "spec": {"parallelism": 2, "template": template}, "status": {}}


def jobset(name: str) -> dict[str, Any]:
    found = job(name)
    role = {"name": "chief", "replicas": 1, "template": {"spec": found["spec"]}}
    return {**found, "spec": {"replicatedJobs": [role], "failurePolicy": {"rules": ["w" * 90_000]}}}


def stuffed(name: str) -> dict[str, Any]:
    """A pod that is large where it cannot be cut."""
    found = pod(1, 3)
    found["spec"]["tolerations"] = [{"key": "k" * 100_000}]
    return {**found, "metadata": {**found["metadata"], "name": name, "resourceVersion": "2"}}


class Server:
    """Answers lists in pages of four objects, and watches with one line for each object."""

    def __init__(self, make: Make, count: int) -> None:
        self._text, self._count, self._page = json.dumps(make("NAME")), count, 0

    async def call(self, token: str, method: str, path: str, query: Any = ()) -> tuple[int, str]:
        found = ",".join(self._text.replace("NAME", f"a{self._page}-{each}") for each in range(4))
        self._page += 1
        more = {"continue": "more"} if 4 * self._page < self._count else {}
        meta = json.dumps({"resourceVersion": "1", **more})
        return 200, f'{{"kind": "List", "items": [{found}], "metadata": {meta}}}'

    @asynccontextmanager
    async def stream(self, token: str, path: str, query: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        async def chunks() -> AsyncIterator[bytes]:
            for each in range(self._count):
                yield b'{"type": "ADDED", "object": %s}\n' % self._text.replace("NAME", f"b{each}").encode()

        yield chunks()


async def read(server: Any) -> int:
    paged = Paged(server, "t", JOBS, ())
    while not paged.ended:
        await paged.read_on()
    return len(paged.listed["items"])


async def watched(server: Any) -> int:
    watch = Watch(JOBS, {}, lambda kind, obj: None)
    watch.begin({"items": [], "metadata": {"resourceVersion": "1"}})
    await watch.follow(server, "t", lambda: None)
    return len(watch.items)


@pytest.mark.parametrize("take", [read, watched])
@pytest.mark.parametrize("make", [job, jobset])
def test_large_jobs_take_little(make: Make, take: Any) -> None:
    tracemalloc.start()
    try:
        assert asyncio.run(take(Server(make, 100))) == 100
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # As they come they are 40 MB; a page, and the text of it, are 5.
    assert most < 12 * MB


@pytest.mark.parametrize("take", [read, watched])
@pytest.mark.parametrize(("bound", "said"), [("LIST_BYTES", "this list takes more than"), ("ALL_BYTES", "all lists")])
def test_what_cannot_be_cut_is_bounded(take: Any, bound: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, bound, 5 * MB)
    with pytest.raises(KubeError, match=said) as refused:
        asyncio.run(take(Server(stuffed, 200)))
    assert refused.value.status == FULL
    assert asyncio.run(take(Server(stuffed, 20))) == 20


def test_a_watch_gives_back_what_goes_and_is_dropped_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(PODS, {}, lambda kind, obj: None)
    watch.begin({"items": [slim(stuffed("a"))], "metadata": {"resourceVersion": "1"}})
    one = watch._held.bytes
    for kind, bytes_ in (("MODIFIED", one), ("DELETED", 0), ("DELETED", 0), ("ADDED", one)):
        watch._event(json.dumps({"type": kind, "object": stuffed("a")}).encode(), False)
        assert abs(watch._held.bytes - bytes_) < 1_000
    monkeypatch.setattr(shares, "LIST_BYTES", one + 1_000)
    with pytest.raises(KubeError, match="this list takes"):
        watch._event(json.dumps({"type": "ADDED", "object": stuffed("b")}).encode(), False)
    assert (watch.items, watch.known, watch.synced, watch._held.bytes) == ([], False, False, 0)


@pytest.mark.parametrize("topology", ["parameter_server", "single"])
def test_readers_see_the_same_of_a_run_that_was_cut(topology: str) -> None:
    live = json.loads(json.dumps(run_object(training(logs={"claim": "training"}), "20261121T120000Z-0001")))
    if topology == "single":
        chief = live["spec"]["replicatedJobs"][0]["template"]["spec"]
        live = {**live, "kind": "Job", "spec": chief}
    cut = slim(live)
    assert weight(cut) < weight(live) / 2 and "env" not in json.dumps(cut)
    for look in (run_state.knobs, run_state.files, wanted_pods, grace, attempt_of, hash_of, workload_of, decider):
        assert look(cut) == look(live) and look(live), look


def test_a_list_that_cannot_be_read_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(stand: Stand) -> None:
        monkeypatch.setattr(shares, "LIST_BYTES", MB)
        session = stand.console.sessions.begin("one", "alice")
        assert session
        with pytest.raises(KubeError, match="this list takes more than"):
            await stand.console.lists.get(session, listing("v1", "pods"))
        assert not stand.console.lists._turns and not len(stand.console.lists)
        # What is read counts once, also where it is kept.
        monkeypatch.setattr(shares, "LIST_BYTES", 10 * MB)
        other = Held("another")
        other.bytes = shares.ALL_BYTES - 5 * MB
        assert len(await names(stand, "two")) == 521
        (large,) = stand.console.lists._large.values()
        assert 2 * MB < large.watch._held.bytes < 5 * MB
        assert sum(each.bytes for each in shares._ALL) - other.bytes < 5 * MB

    run(scenario, tmp_path, api=cluster())
