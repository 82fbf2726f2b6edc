"""The certificate of a TLS server: its end, and what is refused."""

from __future__ import annotations

import http.server
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import service_probe

from tests.unit.certificates import pair_file, self_signed, tls_server
from trainyard.net.https import ServiceError, certificate_end


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return pair_file(tmp_path / "server.pem", *self_signed(days=(-1, 20), name="worker1"))


def ask(url: str, pair: Path, **changes: Any) -> datetime:
    address, _, port = url.removeprefix("https://").partition(":")
    return certificate_end(address, int(port), **{"name": "worker1", "ca_path": str(pair), "timeout": 5.0, **changes})


def test_the_end_of_a_certificate(pair: Path) -> None:
    with tls_server(http.server.BaseHTTPRequestHandler, pair) as url:
        left = ask(url, pair) - datetime.now(UTC)
        assert timedelta(days=19) < left < timedelta(days=21)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": "worker2"}, "certificate refused: Hostname mismatch"),
        ({"ca_path": "/nonexistent"}, "the CA file /nonexistent does not exist"),
    ],
)
def test_what_is_refused(pair: Path, changes: dict[str, Any], told: str) -> None:
    with tls_server(http.server.BaseHTTPRequestHandler, pair) as url, pytest.raises(ServiceError, match=told):
        ask(url, pair, **changes)


def test_a_certificate_of_somebody_else_or_one_that_has_ended(pair: Path, tmp_path: Path) -> None:
    other = pair_file(tmp_path / "other.pem", *self_signed(name="worker1"))
    ended = pair_file(tmp_path / "ended.pem", *self_signed(days=(-3, -1), name="worker1"))
    for served, authority, told in ((pair, other, "self-signed"), (ended, ended, "expired")):
        with (
            tls_server(http.server.BaseHTTPRequestHandler, served) as url,
            pytest.raises(ServiceError, match=f"certificate refused: .*{told}"),
        ):
            ask(url, authority)


def test_nobody_listens(pair: Path) -> None:
    with tls_server(http.server.BaseHTTPRequestHandler, pair) as url:
        pass
    with pytest.raises(ServiceError, match=r"no TLS from 127\.0\.0\.1:"):
        ask(url, pair)


def test_the_probe_says_what_it_found(pair: Path) -> None:
    with tls_server(http.server.BaseHTTPRequestHandler, pair) as url:
        port = int(url.rpartition(":")[2])
        params = {"kubelet_name": "worker1", "kubelet_address": "127.0.0.1", "kubelet_port": port, "timeout": 5.0}
        good = service_probe.probe_kubelet({**params, "ca_path": str(pair)})
        bad = service_probe.probe_kubelet({**params, "ca_path": str(pair), "kubelet_name": "worker2"})
    assert good["ok"] and datetime.fromisoformat(good["ends"]) > datetime.now(UTC)
    assert not bad["ok"] and bad["ends"] is None and "certificate refused" in bad["error"]
