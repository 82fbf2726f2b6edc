"""The connection that only looks: what it says of itself to a server, and which kubeconfigs it leaves to others."""

from __future__ import annotations

import base64
import http.server
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.unit.certificates import pair_file, self_signed, tls_server
from trainyard.kube import connection
from trainyard.kube.api import Api, KubeError
from trainyard.kube.reads import Get, read

SERVER, CLIENT = self_signed(), self_signed(name="alice")


class Says(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked, each on the same connection, until it closes one behind its answer's back."""

    protocol_version = "HTTP/1.1"
    callers: ClassVar[list[Any]] = []
    closes = False

    def do_GET(self) -> None:
        self.callers.append(self.client_address)
        status = 403 if self.path.startswith("/refused") else 200
        said = {"path": self.path, "login": self.headers.get("Authorization", ""), "message": "you may not"}
        text = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = self.closes

    def log_message(self, *arguments: object) -> None:
        return


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "callers", [])
    monkeypatch.setattr(connection, "connect", lambda path: pytest.fail(f"the official client was asked for {path}"))


def data(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def kubeconfig(folder: Path, url: str, cluster: dict[str, Any] | None = None, **user: Any) -> str:
    known = {"server": url, **({"certificate-authority-data": data(SERVER[0])} if cluster is None else cluster)}
    context = {"name": "here", "context": {"cluster": "one", "user": "me"}}
    clusters, users = [{"name": "one", "cluster": known}], [{"name": "me", "user": user}]
    config = {"current-context": "here", "contexts": [context], "clusters": clusters, "users": users}
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return str(file)


def test_a_client_certificate_is_shown(tmp_path: Path) -> None:
    login: dict[str, Any] = {"client-certificate-data": data(CLIENT[0]), "client-key-data": data(CLIENT[1])}
    with tls_server(Says, pair_file(tmp_path / "pair", *SERVER), clients=CLIENT[0]) as url:
        api = connection.connect_to_look(kubeconfig(tmp_path, url, **login))
        found = json.loads(api.call("GET", "/api/v1/pods", query={"labelSelector": "a in (b,c)"}))
        assert found["path"] == "/api/v1/pods?labelSelector=a+in+%28b%2Cc%29"
        api.call("GET", "/version")
    assert len(set(Says.callers)) == 1


def test_files_and_a_token(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(SERVER[0])
    with tls_server(Says, pair_file(tmp_path / "pair", *SERVER)) as url:
        api = connection.connect_to_look(kubeconfig(tmp_path, url, {"certificate-authority": "ca.crt"}, token="secret"))
        assert json.loads(api.call("GET", "/version"))["login"] == "Bearer secret"
        with pytest.raises(KubeError, match="you may not") as caught:
            api.call("GET", "/refused")
        assert caught.value.status == 403
        with pytest.raises(ValueError, match="is read-only"):
            api.call("DELETE", "/version")


def ask_twice(api: Api) -> Any:
    first = yield Get("/one")
    return [first["path"], (yield Get("/two"))["path"]]


def test_a_connection_that_was_closed_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "closes", True)
    with tls_server(Says, pair_file(tmp_path / "pair", *SERVER)) as url:
        api = connection.connect_to_look(kubeconfig(tmp_path, url))
        assert read(api, ask_twice(api)) == ["/one", "/two"]
    assert len(set(Says.callers)) == 2


def test_nobody_there_and_somebody_else(tmp_path: Path) -> None:
    with pytest.raises(KubeError, match="does not answer") as caught:
        connection.connect_to_look(kubeconfig(tmp_path, "https://127.0.0.1:9")).call("GET", "/version")
    assert caught.value.no_answer
    other = pair_file(tmp_path / "pair", *self_signed())
    with tls_server(Says, other) as url, pytest.raises(KubeError, match="certificate is refused") as caught:
        connection.connect_to_look(kubeconfig(tmp_path, url)).call("GET", "/version")
    assert caught.value.final


ODD: list[dict[str, Any]] = [
    {"exec": {"command": "aws"}}, {"auth-provider": {"name": "oidc"}}, {"tokenFile": "t"}, {"username": "a"},
    {"client-certificate-data": "no base64"}, {"client-certificate": "nowhere"},
]  # fmt: skip


@pytest.mark.parametrize("user", ODD)
def test_what_is_not_understood_is_left_to_the_official_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: dict[str, Any]
) -> None:
    other = Api(lambda *_: (200, "other"))
    monkeypatch.setattr(connection, "connect", lambda _: other)
    assert connection.connect_to_look(kubeconfig(tmp_path, "https://127.0.0.1:9", **user)) is other
    for url, cluster in (
        ("http://127.0.0.1:9", None), ("https://127.0.0.1:9/k8s", None), ("https://127.0.0.1:9", {}),
        ("https://127.0.0.1:9", {"certificate-authority-data": data(SERVER[0]), "tls-server-name": "a"}),
        ("https://127.0.0.1:9", {"insecure-skip-tls-verify": True}),
    ):  # fmt: skip
        assert connection.connect_to_look(kubeconfig(tmp_path, url, cluster)) is other
    assert connection.connect_to_look("/nowhere") is other


@pytest.mark.parametrize("connect", [connection.connect, connection.connect_to_look], ids=["official", "fast"])
def test_no_proxy_of_the_environment_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Callable[[str], Api]
) -> None:
    """The API server is part of the site, and at an address that a proxy to the internet does not reach."""
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with tls_server(Says, pair_file(tmp_path / "pair", *SERVER)) as url:
        assert json.loads(connect(kubeconfig(tmp_path, url)).call("GET", "/version"))["path"] == "/version"


def test_why_does_not_import_the_official_client() -> None:
    """It takes half of the time in which `trainyard why` has to answer."""
    code = (
        "import sys\n"
        "import trainyard.cli.why\n"
        "print(sorted({'kubernetes', 'cryptography', 'requests'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
