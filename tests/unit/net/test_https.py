"""service_probe and its request against a real TLS server on the loopback interface."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import service_probe

from tests.unit.certificates import pair_file, self_signed
from trainyard.net import dns as dns_probe
from trainyard.net import https as verify_service
from trainyard.net.https import ServiceError

NAME = "kubernetes.default.svc.cluster.local"
PARAMS = {"dns_server": "10.96.0.10", "dns_port": 53, "port": 443, "path": "/readyz", "ca_path": "", "timeout": 1.0}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate (its own CA) for NAME, with its key in the same file."""
    return pair_file(tmp_path_factory.mktemp("tls") / "server.pem", *self_signed(name=NAME))


@contextmanager
def server(certificate: Path | None, answer: bytes, delay: float = 0.0) -> Iterator[int]:
    """A server for one connection: TLS if it has a certificate, silent TCP otherwise. Yields the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)
    over = threading.Event()

    def serve() -> None:
        try:
            connection, _ = listener.accept()
            with connection:
                if certificate is None:
                    over.wait(10)
                    return
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                with context.wrap_socket(connection, server_side=True) as tls:
                    tls.recv(4096)
                    over.wait(delay)
                    tls.sendall(answer)
        except OSError:
            return  # the client's side of the story is what the tests look at

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        thread.join()
        listener.close()


def request(port: int, ca: str = "", name: str = NAME, timeout: float = 10.0) -> verify_service.Reply:
    return verify_service.request("127.0.0.1", port, name=name, path="/readyz", ca_path=ca, timeout=timeout)


@pytest.mark.parametrize("status", [200, 401, 503])
def test_status_is_read(certificate: Path, status: int) -> None:
    with server(certificate, f"HTTP/1.1 {status} Whatever\r\nContent-Length: 2\r\n\r\nok".encode()) as port:
        reply = request(port)
    assert (reply.status, reply.verified) == (status, False)
    assert 0 < reply.connect_seconds <= reply.seconds


def test_certificate_is_verified_where_the_ca_is(certificate: Path) -> None:
    with server(certificate, b"HTTP/1.1 200 OK\r\n\r\nok") as port:
        assert request(port, ca=str(certificate)).verified


def test_certificate_of_another_name_is_refused(certificate: Path) -> None:
    with server(certificate, b"") as port, pytest.raises(ServiceError, match="certificate refused"):
        request(port, ca=str(certificate), name="somebody.else")


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 abc\r\n"])
def test_answer_that_is_not_http(certificate: Path, answer: bytes) -> None:
    with server(certificate, answer) as port, pytest.raises(ServiceError, match="not HTTP"):
        request(port)


def test_silent_server_is_bounded() -> None:
    started = time.monotonic()
    with server(None, b"") as port, pytest.raises(ServiceError, match=r"TLS handshake was not done within 0\.3 s"):
        request(port, timeout=0.3)
    assert time.monotonic() - started < 2


def test_slow_answer_is_bounded(certificate: Path) -> None:
    # Enough for the handshake, whatever else the machine does.
    late = pytest.raises(ServiceError, match=r"the request was not done within 2 s")
    with server(certificate, b"HTTP/1.1 200 OK\r\n", delay=10) as port, late:
        request(port, timeout=2)


def test_closed_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ServiceError, match="connecting failed: Connection refused"):
        request(port)


@pytest.mark.parametrize(
    ("network", "address"), [("10.96.0.0/16", "10.96.0.1"), ("172.20.8.0/22", "172.20.8.1"), ("fd00::/112", "fd00::1")]
)
def test_service_address_is_the_first_of_the_network(network: str, address: str) -> None:
    assert service_probe.service_address(network) == address


@pytest.mark.parametrize(
    ("addresses", "ok", "error"),
    [
        (("10.96.0.1",), True, ""),
        ((), False, "answer is empty, expected 10.96.0.1"),
        (("10.96.0.9",), False, "answer is 10.96.0.9, expected 10.96.0.1"),
        (("10.96.0.1", "10.96.0.9"), False, "answer is 10.96.0.1, 10.96.0.9, expected 10.96.0.1"),
    ],
)
def test_dns_finding(monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...], ok: bool, error: str) -> None:
    def ask(*_: Any, **__: Any) -> dns_probe.Answer:
        return dns_probe.Answer(addresses, 0.0021)

    monkeypatch.setattr(dns_probe, "ask", ask)
    found = service_probe.probe_dns(PARAMS, NAME, "10.96.0.1")
    assert (found["ok"], found["error"], found["milliseconds"]) == (ok, error, 2.1)


@pytest.mark.parametrize(("status", "ok"), [(200, True), (401, True), (403, True), (404, False), (500, False)])
def test_service_finding(monkeypatch: pytest.MonkeyPatch, status: int, ok: bool) -> None:
    monkeypatch.setattr(verify_service, "request", lambda *_, **__: verify_service.Reply(status, True, 0.001, 0.004))
    found = service_probe.probe_service(PARAMS, NAME, "10.96.0.1")
    assert (found["ok"], found["status"], found["milliseconds"]) == (ok, status, 4.0)
    assert found["error"] == ("" if ok else f"status {status} from /readyz")


def test_findings_of_what_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: Any, **__: Any) -> Any:
        raise dns_probe.DnsError("no answer")

    def broken(*_: Any, **__: Any) -> Any:
        raise ServiceError("no way")

    monkeypatch.setattr(dns_probe, "ask", silent)
    monkeypatch.setattr(verify_service, "request", broken)
    dns = service_probe.probe_dns(PARAMS, NAME, "10.96.0.1")
    service = service_probe.probe_service(PARAMS, NAME, "10.96.0.1")
    assert (dns["ok"], dns["error"], service["ok"], service["error"]) == (False, "no answer", False, "no way")
