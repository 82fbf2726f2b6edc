"""Connecting: what a kubeconfig and a server's certificate may be, against a TLS server on this machine."""

from __future__ import annotations

import base64
import http.server
import json
from pathlib import Path

import pytest

from tests.unit.certificates import pair_file, self_signed, tls_server
from trainyard.kube.api import KubeError
from trainyard.kube.connection import connect


def test_a_missing_kubeconfig_is_a_server_that_cannot_be_asked() -> None:
    with pytest.raises(KubeError, match="no kubeconfig /nowhere") as caught:
        connect("/nowhere")
    assert caught.value.no_answer


@pytest.mark.parametrize("damage", ["", "{", "{clusters: []}"])
def test_a_damaged_kubeconfig_is_no_server_that_may_come(tmp_path: Path, damage: str) -> None:
    (tmp_path / "kubeconfig").write_text(damage)
    with pytest.raises(KubeError, match="kubeconfig cannot be used") as caught:
        connect(str(tmp_path / "kubeconfig"))
    assert caught.value.final and not caught.value.transient


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        return


def write_kubeconfig(path: Path, url: str, ca: str) -> str:
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(ca.encode()).decode()}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    users = [{"name": "a", "user": {"token": "none"}}]
    config = {"clusters": [{"name": "a", "cluster": cluster}], "users": users, "contexts": [context]}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "a", **config}))
    return str(path)


@pytest.mark.parametrize(("days", "final"), [((-1, 1), False), ((-2, -1), True), ((1, 2), False)])
def test_a_certificate_that_time_may_mend_is_tried_again(tmp_path: Path, days: tuple[int, int], final: bool) -> None:
    certificate, key = self_signed(days=days)
    with tls_server(Ready, pair_file(tmp_path / "pair.pem", certificate, key)) as url:
        for trusted, refused_for_good in ((certificate, final), (self_signed()[0], True)):
            api = connect(write_kubeconfig(tmp_path / "kubeconfig", url, trusted))
            if days == (-1, 1) and trusted == certificate:
                assert api.call("GET", "/readyz") == ""
                continue
            with pytest.raises(KubeError) as caught:
                api.call("GET", "/readyz")
            assert (caught.value.final, caught.value.transient) == (refused_for_good, not refused_for_good)
            assert ("is refused" in str(caught.value)) == refused_for_good


def test_a_port_where_nobody_listens_may_answer_later(tmp_path: Path) -> None:
    with pytest.raises(KubeError, match="does not answer") as caught:
        connect(write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:9", self_signed()[0])).call(
            "GET", "/readyz"
        )
    assert caught.value.no_answer and caught.value.transient
