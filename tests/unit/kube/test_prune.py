"""Deleting labelled objects, and Secrets from files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.kube.apply import plan_prune, secret_of_files

SPACE = "trainyard-console"
LABEL = "trainyard.dev/console-user"
ACCOUNTS = {"api_version": "v1", "kind": "ServiceAccount", "namespace": SPACE, "selector": LABEL}
BINDINGS = {"api_version": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "selector": LABEL}
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"


def account(user: str, labelled: bool = True) -> dict[str, Any]:
    labels = {"trainyard.dev/console-user": user} if labelled else {}
    meta = {"name": f"user-{user}", "namespace": SPACE, "labels": labels, "uid": f"uid-{user}"}
    return {"kind": "ServiceAccount", "metadata": meta}


def binding(user: str, namespace: str) -> dict[str, Any]:
    meta = {"name": f"console-viewer-{user}", "namespace": namespace, "labels": {"trainyard.dev/console-user": user}}
    return {"kind": "RoleBinding", "metadata": meta}


@pytest.fixture
def server() -> ApiServer:
    found = [account("alice"), account("bob"), account("robot", labelled=False)]
    objects = {f"/api/v1/namespaces/{SPACE}/serviceaccounts/{each['metadata']['name']}": each for each in found}
    for user, space in (("alice", "trainings"), ("alice", "left"), ("bob", "trainings")):
        objects[f"{RBAC}/{space}/rolebindings/console-viewer-{user}"] = binding(user, space)
    return ApiServer(objects)


def plan(server: ApiServer, *keep: dict[str, Any]) -> Any:
    return plan_prune(Api(server), [ACCOUNTS, BINDINGS], keep)


def test_what_is_not_kept_goes_and_nothing_else(server: ApiServer) -> None:
    made = plan(server, account("alice"), binding("alice", "trainings"))
    assert [step.what for step in made.steps] == [
        f"Delete ServiceAccount {SPACE}/user-bob",
        "Delete RoleBinding left/console-viewer-alice",
        "Delete RoleBinding trainings/console-viewer-bob",
    ]
    assert server.writes == []
    made.execute()
    assert sorted(path.rpartition("/")[2] for path in server.objects) == [
        "console-viewer-alice",
        "user-alice",
        "user-robot",
    ]
    assert not plan(server, account("alice"), binding("alice", "trainings")).changed


def test_one_that_was_made_again_since_stays(server: ApiServer) -> None:
    bindings = [
        binding(user, space) for user, space in (("alice", "trainings"), ("alice", "left"), ("bob", "trainings"))
    ]
    made = plan(server, account("bob"), *bindings)
    server.objects[f"/api/v1/namespaces/{SPACE}/serviceaccounts/user-alice"]["metadata"]["uid"] = "another"
    with pytest.raises(TrainyardError, match="UID"):
        made.execute()


def test_one_that_is_going_is_not_told_again(server: ApiServer) -> None:
    gone = server.objects[f"/api/v1/namespaces/{SPACE}/serviceaccounts/user-bob"]["metadata"]
    gone["deletionTimestamp"] = "2026-11-23T12:00:00Z"
    assert not any("user-bob" in step.what for step in plan(server).steps)


def test_everything_is_never_meant(server: ApiServer) -> None:
    with pytest.raises(ValueError, match="would delete everything"):
        plan_prune(Api(server), [ACCOUNTS, {**BINDINGS, "selector": " "}], [])


def test_a_secret_has_the_contents_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\x00secret")
    made = secret_of_files(
        name="tls",
        namespace=SPACE,
        type="kubernetes.io/tls",
        files={"tls.key": str(tmp_path / "key")},
        labels={"a": "b"},
    )
    assert base64.b64decode(made["data"]["tls.key"]) == b"\x00secret"
    assert (made["type"], made["metadata"]["labels"]) == ("kubernetes.io/tls", {"a": "b"})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match="absent, for the Secret trainyard-console/tls, cannot be read: No such"):
        secret_of_files(name="tls", namespace=SPACE, type="Opaque", files={"k": str(tmp_path / "absent")}, labels={})
