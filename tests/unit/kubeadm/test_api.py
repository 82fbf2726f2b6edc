"""The API server as a node sees it, against a TLS server on this machine."""

from __future__ import annotations

import base64
import http.server
import json
from collections.abc import Iterator

import pytest

from tests.unit.certificates import pair_file, self_signed, tls_server
from trainyard.kubeadm import node_api as kubeadm_api

NODES = {
    "ready": '{"status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]}}',
    "silent": '{"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}',
    "new": '{"status": {}}',
    "broken": "half of",
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        node = NODES.get(self.path.removeprefix("/api/v1/nodes/"))
        if node and self.headers["Authorization"] == "Bearer abcdef.0123456789abcdef":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(node.encode())
            return
        self.send_response({"/readyz": 200, "/denied": 403}.get(self.path, 404))
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        return


@pytest.fixture
def server(tmp_path) -> Iterator[tuple[str, str, str]]:
    """URL, certificate and key of a running server."""
    certificate, key = self_signed()
    with tls_server(Handler, pair_file(tmp_path / "pair.pem", certificate, key)) as url:
        yield url, certificate, key


def kubeconfig(tmp_path, monkeypatch, url: str, ca: str, certificate: str, key: str) -> str:
    """A kubectl that prints this kubeconfig as JSON, and the path to give it."""

    def coded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    config = {
        "clusters": [{"cluster": {"server": url, "certificate-authority-data": coded(ca)}}],
        "users": [{"user": {"client-certificate-data": coded(certificate), "client-key-data": coded(key)}}],
    }
    (tmp_path / "view.json").write_text(json.dumps(config))
    (tmp_path / "kubectl").write_text(f"#!/bin/sh\ncat {tmp_path}/view.json\n")
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return str(tmp_path / "admin.conf")


@pytest.mark.parametrize(("path", "status"), [("/readyz", 200), ("/denied", 403), ("/else", 404)])
def test_status(server, tmp_path, monkeypatch, path: str, status: int) -> None:
    url, certificate, key = server
    config = kubeconfig(tmp_path, monkeypatch, url, certificate, certificate, key)
    assert kubeadm_api.api_get(config, path).status == status


def test_a_server_with_another_ca_will_never_answer(server, tmp_path, monkeypatch) -> None:
    url, certificate, key = server
    other, _ = self_signed()
    answer = kubeadm_api.api_get(kubeconfig(tmp_path, monkeypatch, url, other, certificate, key), "/readyz")
    assert (answer.status, answer.final) == (0, True)
    assert "CERTIFICATE_VERIFY_FAILED" in answer.reason


@pytest.mark.parametrize(("days", "final"), [((-2, -1), True), ((1, 2), False)], ids=["expired", "not yet valid"])
def test_only_a_certificate_that_time_may_mend_is_waited_for(tmp_path, monkeypatch, days, final: bool) -> None:
    certificate, key = self_signed(days=days)
    with tls_server(Handler, pair_file(tmp_path / "pair.pem", certificate, key)) as url:
        answer = kubeadm_api.api_get(kubeconfig(tmp_path, monkeypatch, url, certificate, certificate, key), "/readyz")
    assert (answer.status, answer.final) == (0, final)
    assert answer.reason


def test_no_server_may_come_back(tmp_path, monkeypatch) -> None:
    certificate, key = self_signed()
    config = kubeconfig(tmp_path, monkeypatch, "https://127.0.0.1:9", certificate, certificate, key)
    answer = kubeadm_api.api_get(config, "/readyz")
    assert (answer.status, answer.final) == (0, False)
    assert "refused" in answer.reason


def test_a_half_written_kubeconfig_is_an_answer_that_names_it(tmp_path, monkeypatch) -> None:
    kubeconfig(tmp_path, monkeypatch, "", "", "", "")
    (tmp_path / "view.json").write_text('{"clusters": null, "users": null}')
    answer = kubeadm_api.api_get(str(tmp_path / "admin.conf"), "/readyz")
    assert answer.final
    assert "admin.conf" in answer.reason


@pytest.mark.parametrize("name", ["ready", "silent", "new", "broken", "missing"])
def test_a_node_is_ready_when_it_says_so(server, name: str) -> None:
    url, certificate, _ = server
    endpoint, token = url.removeprefix("https://"), "abcdef.0123456789abcdef"
    assert kubeadm_api.node_is_ready(endpoint, certificate, token, name) == (name == "ready")


def test_nobody_says_that_a_node_is_ready(server) -> None:
    url, certificate, _ = server
    endpoint, token = url.removeprefix("https://"), "abcdef.0123456789abcdef"
    assert not kubeadm_api.node_is_ready(endpoint, certificate, "abcdef.another", "ready")
    assert not kubeadm_api.node_is_ready(endpoint, self_signed()[0], token, "ready")
    assert not kubeadm_api.node_is_ready("127.0.0.1:9", certificate, token, "ready")
