"""`trainyard token` and `trainyard console`: whose login, for how long, in what file; and the way to the console."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.unit import apiserver
from tests.unit.apiserver import ApiServer
from trainyard.cli import token
from trainyard.cli.logins import make, reach
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api, KubeError
from trainyard.site.inventory import Places

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)
SPACE = "/api/v1/namespaces/trainyard-console"
ENDS = "2026-11-23T20:00:00Z"


class Console(ApiServer):
    """The cluster of a console, which makes tokens."""

    asked: dict[str, Any]
    refuse = 0

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        if path == "/api/v1":
            served = [*apiserver.KINDS[path], "ServiceAccount"]
            kinds = [{"kind": it, "name": apiserver.plural(it), "namespaced": it != "Node"} for it in served]
            return 200, json.dumps({"resources": kinds})
        if path.endswith("/serviceaccounts"):
            return 200, json.dumps({"items": [it for each, it in self.objects.items() if "/serviceaccounts/" in each]})
        if path.endswith("/token"):
            self.asked = {"path": path, **body["spec"]}
            return (self.refuse, "{}") if self.refuse else (201, json.dumps({"status": {
                "token": "s3cret", "expirationTimestamp": ENDS}}))  # fmt: skip
        return super().__call__(method, path, query, body, kind)

    @property
    def logins(self) -> list[str]:
        return [path.rpartition("/")[2] for path in self.objects if "/secrets/" in path]


def account(name: str, **notes: str) -> dict[str, Any]:
    meta = {"name": f"user-{name}", "labels": {"trainyard.dev/console-user": name}}
    return {
        "metadata": {**meta, "annotations": {f"trainyard.dev/console-{key}": value for key, value in notes.items()}}
    }


def cluster(**more: Any) -> Console:
    alice = account("alice", level="operator", **{"token-hours": "8"})
    return Console(
        {f"{SPACE}/serviceaccounts/user-alice": alice, f"{SPACE}/serviceaccounts/user-bob": account("bob"), **more}
    )


def test_a_token_is_bound_to_a_secret_of_its_own_and_kept_for_its_owner(tmp_path: Path) -> None:
    server = cluster()
    login = make(Api(server), "alice", None, tmp_path / "tokens", NOW)
    (name,) = server.logins
    assert name.startswith("token-alice-") and login.name == name
    secret = server.objects[f"{SPACE}/secrets/{name}"]
    assert secret["metadata"]["labels"]["trainyard.dev/console-token"] == "alice" and "data" not in secret
    assert server.asked["path"] == f"{SPACE}/serviceaccounts/user-alice/token"
    assert server.asked["expirationSeconds"] == 8 * 3600
    assert server.asked["boundObjectRef"]["uid"] == secret["metadata"]["uid"]
    assert (login.level, login.ends.isoformat()) == ("operator", "2026-11-23T20:00:00+00:00")
    assert login.file.read_text() == "s3cret\n"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (login.file, login.file.parent)] == [0o600, 0o700]


def test_a_file_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "console-alice").write_text("old")
    (tmp_path / "console-alice").chmod(0o644)
    file = make(Api(cluster()), "alice", 1, tmp_path, NOW).file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["console-alice"]


@pytest.mark.parametrize(
    ("user", "hours", "said"),
    [
        ("carol", None, "The console has no user carol. Use one of alice, bob, or add the user to dashboard_users"),
        ("alice", 9, "A token of alice may be valid for 8 hours, not for 9. Request fewer hours"),
        ("alice", 0, "not for 0"),
        ("alice", -1, "not for -1"),
    ],
)
def test_refusals(tmp_path: Path, user: str, hours: float | None, said: str) -> None:
    server = cluster()
    with pytest.raises(TrainyardError) as caught:
        make(Api(server), user, hours, tmp_path, NOW)
    assert said in str(caught.value)
    assert not server.writes and not list(tmp_path.iterdir())


def test_a_token_that_is_not_made_or_not_kept_leaves_nothing(tmp_path: Path) -> None:
    server = cluster()
    server.refuse = 403
    with pytest.raises(KubeError):
        make(Api(server), "alice", None, tmp_path, NOW)
    server.refuse = 0
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainyardError, match="cannot be written"):
        make(Api(server), "alice", None, tmp_path / "file", NOW)
    assert server.logins == []


def test_what_has_ended_is_swept_away(tmp_path: Path) -> None:
    def bound(user: str, ends: str) -> dict[str, Any]:
        notes = {"trainyard.dev/console-token-ends": ends}
        return {
            "metadata": {"name": f"token-{user}", "labels": {"trainyard.dev/console-token": user}, "annotations": notes}
        }

    old, young, other = "2026-11-23T11:00:00+00:00", "2026-11-23T13:00:00+00:00", "2026-11-01T00:00:00+00:00"
    there = {
        "a1": bound("alice", old),
        "a2": bound("alice", young),
        "b": bound("bob", other),
        "a3": bound("alice", "soon"),
    }
    for name, each in there.items():
        each["metadata"]["name"] = name
    server = cluster(**{f"{SPACE}/secrets/{name}": each for name, each in there.items()})
    made = make(Api(server), "alice", None, tmp_path, NOW).name
    assert set(server.logins) == {"a2", "a3", "b", made}


def test_the_program_shows_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token, "places", lambda _: Places("kubeconfig", "logs", str(tmp_path)))
    monkeypatch.setattr(token, "connect", lambda _: Api(cluster()))
    done = CliRunner().invoke(token.command, ["alice"], obj=())
    assert done.exit_code == 0, done.output
    assert f"file   {tmp_path}/console-alice\nlevel  operator\nends   2026-11-2" in done.output
    assert "s3cret" not in done.output


def service(kind: str = "ClusterIP") -> dict[str, Any]:
    ports = [
        {"name": "https", "port": 8443, "nodePort": 30443},
        {"name": "tensorboard", "port": 8444, "nodePort": 30444},
    ]
    return {"metadata": {"name": "console"}, "spec": {"type": kind, "ports": ports}}


POD = {"metadata": {"name": "c", "labels": {"app.kubernetes.io/name": "console"}}, "status": {"hostIP": "10.88.0.3"}}


def test_where_the_console_is() -> None:
    where = f"{SPACE}/services/console"
    assert reach(Api(Console({where: service()}))).ports == (8443, 8444)
    there = {where: service("NodePort"), f"{SPACE}/pods/c": POD}
    assert reach(Api(Console(there))).address == "https://10.88.0.3:30443/"
    there[f"{SPACE}/pods/c"] = {**POD, "status": {"hostIP": "fd00::3"}}
    assert reach(Api(Console(there))).address == "https://[fd00::3]:30443/"
    with pytest.raises(KubeError, match="no pod on a node"):
        reach(Api(Console({where: service("NodePort")})))
    with pytest.raises(TrainyardError, match="no console"):
        reach(Api(Console()))
