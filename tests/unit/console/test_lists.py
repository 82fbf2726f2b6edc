"""Lists come in pages, without what nobody looks at, and large ones are kept for those who may read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.console.consoles import Stand, run
from tests.unit.console.fake import User
from tests.unit.console.large import NODES, PODS, Large, node, pod
from tests.unit.console.watching import until
from trainyard.console import lists
from trainyard.console import user_api as calls
from trainyard.console.paged import slim
from trainyard.kube.reads import listing

USERS = {"one": User("alice"), "two": User("ann"), "few": User("bob", namespaces=("trainings",))}
ALL = listing("v1", "pods")


def cluster() -> Large:
    return Large(USERS, 520, 3)


async def names(stand: Stand, token: str) -> list[str]:
    session = stand.console.sessions.begin(token, USERS[token].name)
    assert session
    found = await stand.console.lists.get(session, ALL)
    return [each["metadata"]["name"] for each in found["items"]]


def test_a_large_list_is_read_once_and_kept_for_all_who_may_read_it(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        assert isinstance(stand.api, Large)
        found = await names(stand, "one")
        assert len(found) == 521 == len(set(found))
        assert stand.api.pages == [PODS] * 2
        assert sorted(await names(stand, "two")) == sorted(found)
        assert stand.api.pages == [PODS] * 2
        # One who may not read it does not get it from others.
        with pytest.raises(Exception, match="bob may not"):
            await names(stand, "few")
        # A change comes by the watch.
        await until(lambda: PODS in stand.api.streams)
        stand.api.change("DELETED", f"{PODS}/pod-7", stand.api.objects.setdefault(f"{PODS}/pod-7", pod(7, 3)))
        stand.api.change("ADDED", f"{PODS}/fresh", {**pod(8, 3), "metadata": {"name": "fresh", "namespace": "team-8"}})
        large = next(iter(stand.console.lists._large.values()))
        await until(lambda: ("team-8", "fresh") in large.watch._objects)
        after = await names(stand, "two")
        assert "fresh" in after and "pod-7" not in after

    run(scenario, tmp_path, api=cluster())


def test_a_right_that_is_taken_away_ends_the_sharing(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await names(stand, "one")
        await names(stand, "two")
        stand.api.users["two"] = User("ann", namespaces=("trainings",))
        stand.clock.ahead += lists.FRESH_SECONDS + 1
        with pytest.raises(Exception, match="ann may not"):
            await names(stand, "two")
        assert len(await names(stand, "one")) == 521

    run(scenario, tmp_path, api=cluster())


def test_a_list_ends_with_the_login_whose_token_reads_it(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        await names(stand, "one")
        (leader,) = stand.console.sessions._known.values()
        stand.console.sessions.end(leader)
        await until(lambda: not len(stand.console.lists) and PODS not in stand.api.streams)
        assert len(await names(stand, "two")) == 521
        assert stand.api.pages == [PODS] * 4

    run(scenario, tmp_path, api=cluster())


def test_objects_that_are_large_come_in_smaller_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "ANSWER_BYTES", 700_000)

    async def scenario(stand: Stand) -> None:
        assert isinstance(stand.api, Large)
        assert len(await names(stand, "one")) == 521
        assert len(stand.api.pages) == 1 + 6

    run(scenario, tmp_path, api=cluster())


def test_a_small_list_is_not_kept(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        session = stand.console.sessions.begin("one", "alice")
        assert session
        assert len((await stand.console.lists.get(session, listing("v1", "nodes")))["items"]) == 3
        assert not len(stand.console.lists)
        assert NODES not in stand.api.streams

    run(scenario, tmp_path, api=cluster())


def test_what_nobody_looks_at_is_dropped() -> None:
    found = slim(pod(1, 3, "run"))
    size = len(json.dumps(found))
    assert size < 1_500 < 5_000 < len(json.dumps(pod(1, 3, "run")))
    assert "managedFields" not in found["metadata"] and "env" not in json.dumps(found)
    assert found["spec"]["containers"][0]["resources"] == pod(1, 3)["spec"]["containers"][0]["resources"]
    assert "images" not in slim(node(1))["status"] and slim(node(1))["status"]["allocatable"]
    record: dict[str, Any] = {"metadata": {"name": "a"}, "data": {"result.json": "{}", "manifest.json": "{}"}}
    assert slim(record)["data"] == {"result.json": "{}"}
    for odd in ({}, {"metadata": None}, {"metadata": [], "spec": 3, "status": "x", "data": []}):
        slim(odd)
