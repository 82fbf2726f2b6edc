"""Every page of the console over one cluster: what it shows, and that nothing of it is markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from tests.browser.lines import evaluate
from tests.browser.scene import scene
from tests.browser.world import CONSOLE, HOSTILE, SPACE
from tests.unit.console_views.views import html, view
from trainyard.console.views import cluster_page, nodes_page, page_table, receipts, run_page, runs_page
from trainyard.console.views.page_table import PAGES
from trainyard.kube.api import KubeError

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)
WORLD = scene(NOW)
NEWEST = "receipt-20261122T115500Z"
PARAMS = {
    "run": {"namespace": SPACE, "run": "mnist-ps"},
    "receipt": {"name": NEWEST},
    "objects": {"group": "core", "version": "v1", "resource": "configmaps"},
    "object": {"group": "core", "version": "v1", "resource": "configmaps", "namespace": CONSOLE, "name": "settings"},
}


def test_runs_by_what_becomes_of_them() -> None:
    made = view(WORLD, runs_page.PAGE)
    assert [each["run"] for each in made["active"]] == ["cnn", "mnist-ps"]
    assert [each["run"] for each in made["queue"]] == ["wide"]
    assert [(each["run"], each["tone"]) for each in made["over"]] == [
        ("first", "good"), ("bound", "bad"), ("evening", "idle"),
    ]  # fmt: skip
    assert made["summary"] == ["2 active", "1 waiting", "3 GPUs in use"]
    shown = made["active"][1]["shown"]
    assert shown["step"] == "1,240 of 2,000" and shown["accuracy"] == "96.9 %" and shown["left"] == "6 s"


def test_the_queue_says_who_holds_it_and_for_how_long() -> None:
    (waiting,) = view(WORLD, runs_page.PAGE)["queue"]
    assert waiting["age"] >= 130 and "Insufficient nvidia.com/gpu" in waiting["why"]
    first = waiting["held_by"][0]
    assert (first["name"], first["shown"], first["href"]) == ("cnn", "gpu 2, about 7 s left", "/runs/trainings/cnn")


def test_runs_of_who_may_see_his_own_namespace_alone() -> None:
    everywhere = ("/apis/jobset.x-k8s.io/v1alpha2/jobsets", "/apis/batch/v1/jobs", "/api/v1/configmaps", "/api/v1/pods")
    made = view(WORLD, runs_page.PAGE, dict.fromkeys(everywhere, 403))
    assert [each["run"] for each in made["active"]] == ["cnn", "mnist-ps"] and not made["unread"]
    assert [each["name"] for each in made["queue"][0]["held_by"]] == ["cnn"]


def test_objects_of_who_may_see_his_own_namespace_alone() -> None:
    params = {"group": "core", "version": "v1", "resource": "pods"}
    every = view(WORLD, cluster_page.OBJECTS, **params)
    made = view(WORLD, cluster_page.OBJECTS, {"/api/v1/pods": 403}, **params)
    assert made["rows"] and {each["namespace"] for each in made["rows"]} == {SPACE}
    assert every["only"] == [] and made["only"] == [f"Only the namespaces that you may see are shown: {SPACE}."]
    assert made["only"][0] in html(cluster_page.OBJECTS, made)
    for kind, status in (("pods", 403), ("nodes", 404)):
        refused = {f"/api/v1/{kind}": 403, f"/api/v1/namespaces/{SPACE}/{kind}": status}
        with pytest.raises(KubeError) as caught:
            view(WORLD, cluster_page.OBJECTS, refused, **{**params, "resource": kind})
        assert caught.value.status == 403


def test_no_run_is_shown_where_none_may_be_seen() -> None:
    """An empty list would say that there are none."""
    refused = dict.fromkeys(["/api/v1/configmaps", f"/api/v1/namespaces/{SPACE}/configmaps"], 403)
    with pytest.raises(KubeError):
        view(WORLD, runs_page.PAGE, refused)


def test_a_run_with_its_curves_pods_and_events() -> None:
    made = view(WORLD, run_page.PAGE, **PARAMS["run"])
    loss, accuracy, _ = made["curves"]
    assert [step for step, _ in loss["points"]] == list(range(20, 1241, 20))
    assert accuracy["points"][-1] == [1200, evaluate(1200, 0)["accuracy"]] and accuracy["bound"] == 0.95
    assert [each["place"] for each in made["pods_now"]] == ["chief-0", "ps-0", "worker-0", "worker-1"]
    assert {"name": "batch_size", "value": "64"} in made["knobs"] and made["files"]["claim"] == "mnist-ps-logs"
    assert made["tensorboard"] == "/tensorboard/trainings/mnist-ps-logs/" and made["device"] == "CPU"
    assert {each["reason"] for each in made["events"]} == {"Started", "Pulled", "JobsCreated", "FailedMount"}


def test_a_log_is_in_the_page_where_it_is_asked_for() -> None:
    pod = "mnist-ps-chief-0-0-ax9k2"
    made = view(WORLD, run_page.PAGE, **PARAMS["run"], log=pod, tail="50")
    assert made["log"]["text"].count("\n") == 50 and made["log"]["pod"] == pod
    assert not view(WORLD, run_page.PAGE, **PARAMS["run"], log="coredns-1")["log"]["text"], "a pod of another run"


@pytest.mark.parametrize(
    ("text", "lines"), [("50", 50), ("99999", 1000), ("0", 200), ("-1", 200), ("x", 200), ("9" * 40, 200)]
)
def test_lines_of_a_log_are_bounded(text: str, lines: int) -> None:
    assert run_page.tail({"tail": text}) == lines


def test_a_run_that_is_not_there_is_no_empty_page() -> None:
    with pytest.raises(KubeError) as error:
        view(WORLD, run_page.PAGE, namespace=SPACE, run="mnist")
    assert error.value.status == 404 and "mnist-ps" in error.value.remedy


def test_nodes_with_usage_and_gpus() -> None:
    first, _, third = view(WORLD, nodes_page.PAGE)["nodes"]
    assert (first["role"], first["state"], first["gpus"]) == ("control plane", "ready", None)
    assert [each["text"] for each in third["gpus"]["slots"]] == ["wide worker-0", "unhealthy"] and third["gpus"][
        "free"
    ] == 0
    assert third["memory"]["requested"] == 5 * 2 * 2**30 and 0 < third["cpu"]["share"] < 1


@pytest.mark.parametrize("status", [403, 503])
def test_nodes_without_what_cannot_be_read(status: int) -> None:
    refused = ["/apis/metrics.k8s.io/v1beta1/nodes", "/api/v1/pods", "/api/v1/namespaces"]
    made = view(WORLD, nodes_page.PAGE, dict.fromkeys(refused, status))
    assert len(made["unread"]) == 2 and made["nodes"][0]["cpu"]["used"] is None
    assert {each["text"] for each in made["nodes"][2]["gpus"]["slots"]} == {"unknown", "unhealthy"}
    assert made["nodes"][2]["gpus"]["free"] is None and made["summary"][1] == "4 GPUs, 3 unknown"


def test_nodes_of_who_may_see_some_namespaces() -> None:
    """What seems to be free may be held by a pod that is not seen."""
    hidden = {"/api/v1/pods": 403, f"/api/v1/namespaces/{CONSOLE}/pods": 403}
    made = view(WORLD, nodes_page.PAGE, hidden)
    assert made["unread"] == [f"You may not see the resources held by pods in: {CONSOLE}."]
    assert [each["text"] for each in made["nodes"][1]["gpus"]["slots"]] == ["cnn worker-0", "cnn worker-1"]


def test_receipts_with_what_failed() -> None:
    newest, *_ = view(WORLD, receipts.LIST)["receipts"]
    assert (newest["verdict"], newest["passed"], newest["failed"]) == ("fail", 8, ["gpus_healthy"])
    one = view(WORLD, receipts.ONE, name=NEWEST)
    assert [each["result"] for each in one["checks"]][:2] == ["fail", "pass"] and one["warnings"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"checks": 1, "nodes": [1], "trainings": {}, "warnings": null}'])
def test_a_receipt_that_is_none_is_shown_as_such(text: str) -> None:
    odd = {"metadata": {"name": "receipt-x"}, "data": {"receipt.json": text}}
    made = receipts.build_one(odd, {}, NOW)
    assert made["verdict"] == "unreadable" and made["tone"] == "bad" and not made["checks"]


def test_values_of_a_secret_are_in_no_page() -> None:
    made = view(
        WORLD, cluster_page.OBJECT, **{**PARAMS["object"], "resource": "secrets", "namespace": SPACE, "name": "login"}
    )
    assert "token: (not shown)" in made["yaml"].replace('"', "")
    assert "c2VjcmV0" not in html(cluster_page.OBJECT, made)


@pytest.mark.parametrize("part", ["..", ".", "a/b", "-x", "", "a b", "%2e"])
def test_what_is_no_name_is_asked_of_nobody(part: str) -> None:
    with pytest.raises((KubeError, AssertionError)):
        assert view(WORLD, cluster_page.OBJECTS, group="core", version="v1", resource=part)["rows"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name + str(page.path.count("/")))
def test_markup_of_a_run_is_text_on_every_page(page: object) -> None:
    assert isinstance(page, type(runs_page.PAGE))
    world = scene(NOW, hostile=True)
    params = dict(PARAMS.get(page.name, {}))
    if page.name == "run":
        params["log"] = "mnist-ps-chief-0-0-ax9k2"
    if page is cluster_page.OF_CLUSTER:
        params = {"group": "core", "version": "v1", "resource": "nodes", "name": "worker1"}
    made = view(world, page, **params)
    if page is page_table.PAGE:
        # What the server itself knows.
        made |= {"user": HOSTILE, "may": [{"namespace": SPACE, "text": HOSTILE}], "versions": {"uplot": HOSTILE}}
    text = html(page, made, "stop", "delete")
    assert HOSTILE not in text and "<img src=x" not in text
    assert (
        page.name in ("nodes", "kinds", "about", "receipts", "objects")
        or "&lt;img" in text
        or page is cluster_page.OF_CLUSTER
    )
    # What the policy of the pages forbids: scripts, styles and handlers in the page itself.
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=\"", text)


@pytest.mark.parametrize(
    ("actions", "shown"),
    [((), []), (("stop",), ["stop"]), (("continue",), []), (("delete", "restart"), ["restart", "delete"])],
)
def test_buttons_are_those_that_the_rights_allow(actions: tuple[str, ...], shown: list[str]) -> None:
    text = html(run_page.PAGE, view(WORLD, run_page.PAGE, **PARAMS["run"]), *actions)
    assert re.findall(r'action="/api/v1/runs/trainings/mnist-ps/(\w+)"', text) == shown


def test_about_says_why_the_api_server_is_not_known() -> None:
    assert view(WORLD, page_table.PAGE)["api_server"] == "v1.36.1"
    assert view(WORLD, page_table.PAGE, {"/version": 503})["unread"] == "/version is refused"
