"""Readers without a transport, and the driver that asks by an `Api`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from trainyard.kube.api import Api, KubeError
from trainyard.kube.reads import Get, Reader, Unread, listing, log, must, objects, path, read

POD = {"metadata": {"name": "p", "namespace": "a", "labels": {"x": "1"}}}
PODS = {"/api/v1/namespaces/a/pods/p": POD, "/api/v1/namespaces/a/pods/q": {"metadata": {"name": "q"}}}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("v1", "nodes"), "/api/v1/nodes"),
        (("v1", "pods", "a", "p", "log"), "/api/v1/namespaces/a/pods/p/log"),
        (("batch/v1", "jobs", "a"), "/apis/batch/v1/namespaces/a/jobs"),
        # A name comes from a browser: it must not reach another object.
        (("v1", "pods", "a", "../secrets?x=1"), "/api/v1/namespaces/a/pods/..%2Fsecrets%3Fx%3D1"),
    ],
)
def test_paths(parts: tuple[str, ...], expected: str) -> None:
    assert path(*parts) == expected


def test_a_list_asks_by_its_selectors_alone() -> None:
    assert listing("v1", "pods", labels="x=1") == Get("/api/v1/pods", {"labelSelector": "x=1"})
    assert log("a", "p", tail=3, previous=True).query == {"tailLines": "3", "previous": "true"}


def one(wanted: Get | tuple[Get, ...]) -> Reader[Any]:
    return (yield wanted)


def test_one_answer_and_several_in_their_order() -> None:
    api = Api(ApiServer({**PODS, "/api/v1/namespaces/a/pods/p/log": lambda _: "said"}))
    pod, pods = Get(path("v1", "pods", "a", "p")), listing("v1", "pods", "a", labels="x=1")
    assert read(api, one(pod)) == POD
    assert read(api, one((log("a", "p", tail=1), pods, pod))) == ("said", {"items": [POD]}, POD)
    assert read(api, one(())) == ()


def test_what_cannot_be_read_says_so_and_the_rest_is_read() -> None:
    api = Api(ApiServer({**PODS, "/api/v1/nodes": 403}))
    missing, refused, there = read(
        api, one((Get("/api/v1/namespaces/a/pods/z"), Get("/api/v1/nodes"), Get("/api/v1/namespaces/a/pods/p")))
    )
    assert missing.absent and not missing.refused
    assert refused == Unread("/api/v1/nodes", 403, "/api/v1/nodes: no /api/v1/nodes (status 403)")
    assert refused.refused
    assert there == POD


def test_no_answer_and_nonsense_are_unread() -> None:
    gone = Api(lambda *_: (0, "connection refused"))
    assert read(gone, one(Get("/x"))).reason == "The API server does not answer: connection refused"
    assert read(Api(lambda *_: (200, "<html>")), one(Get("/x"))).status == 0


def test_a_connection_that_can_never_be_used_is_an_error() -> None:
    def refuse(*_: Any) -> tuple[int, str]:
        raise KubeError("The certificate is refused.", status=0, final=True)

    for wanted in (Get("/x"), (Get("/x"),)):
        with pytest.raises(KubeError, match="certificate"):
            read(Api(refuse), one(wanted))


def test_objects_have_their_kind_and_an_unknown_kind_has_none() -> None:
    answer = {"kind": "PodList", "apiVersion": "v1", "items": [POD]}
    assert objects(answer) == [{"apiVersion": "v1", "kind": "Pod", **POD}]
    assert objects(Unread("/x", 404, "no such kind")) == []
    refused = Unread("/x", 403, "forbidden")
    assert objects(refused) == refused


def test_what_is_needed_raises_where_it_is_missing() -> None:
    assert must({"a": 1}) == {"a": 1}
    with pytest.raises(KubeError, match="forbidden") as caught:
        must(Unread("/x", 403, "forbidden"))
    assert caught.value.status == 403
