"""How a host leaves the members of etcd, against a fake of another member's JSON gateway."""

from __future__ import annotations

import http.server
import json
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests.unit.certificates import pair_file, self_signed, tls_server
from trainyard.core.errors import TrainyardError
from trainyard.kubeadm import etcd
from trainyard.kubeadm.kubeadm_program import Host

OWN = "https://192.0.2.2:2380"
OTHER = {"ID": "1", "name": "cp1", "peerURLs": ["https://192.0.2.1:2380"]}
# uint64 is more than a float holds, so that the gateway sends identifiers as text.
MINE = {"ID": "17446744073709551615", "peerURLs": [OWN]}
POD = """
    - --initial-advertise-peer-urls=https://192.0.2.2:2380
    - --initial-cluster=cp1=https://192.0.2.1:2380,cp2=https://192.0.2.2:2380,cp6=https://[2001:db8::6]:2380
"""


class Gateway(http.server.BaseHTTPRequestHandler):
    members: ClassVar[list] = []
    has_quorum = True
    removed: ClassVar[list] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v3/cluster/member/remove" and self.has_quorum:
            type(self).removed.append(body["ID"])
            self.members[:] = [member for member in self.members if member["ID"] != body["ID"]]
        elif self.path == "/v3/cluster/member/list" and (self.has_quorum or body == {"linearizable": False}):
            pass
        else:
            self.send_error(503)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"members": self.members}).encode())

    def log_message(self, *arguments: object) -> None:
        return


@pytest.fixture
def host(tmp_path, monkeypatch) -> Iterator[Host]:
    """A host with the keys of a member; the other members' gateway listens on this machine."""
    certificate, key = self_signed()
    for name, text in {"etcd/ca.crt": certificate, "apiserver-etcd-client.crt": certificate}.items():
        (tmp_path / "pki" / "etcd").mkdir(parents=True, exist_ok=True)
        (tmp_path / "pki" / name).write_text(text)
    (tmp_path / "pki" / "apiserver-etcd-client.key").write_text(key)
    monkeypatch.setattr(Gateway, "members", [dict(OTHER), dict(MINE)])
    monkeypatch.setattr(Gateway, "removed", [])
    with tls_server(Gateway, pair_file(tmp_path / "pair.pem", certificate, key)) as url:
        # The first does not answer.
        monkeypatch.setattr(etcd, "addresses", lambda *_: ["https://127.0.0.1:9", url])
        yield Host(etc=str(tmp_path))


def test_a_member_that_never_started_leaves(host) -> None:
    etcd.leave(host, "192.0.2.2", timeout=0)
    assert Gateway.removed == [MINE["ID"]]
    assert Gateway.members == [OTHER]


def test_a_host_that_is_no_member_removes_nobody(host) -> None:
    etcd.leave(host, "192.0.2.3", timeout=0)
    assert Gateway.removed == []


def test_a_host_that_is_still_counted_is_refused(host, monkeypatch) -> None:
    monkeypatch.setattr(Gateway, "has_quorum", False)
    with pytest.raises(TrainyardError, match=r"192\.0\.2\.2:2380") as caught:
        etcd.leave(host, "192.0.2.2", timeout=0)
    assert "all control plane hosts" in caught.value.remedy


def test_where_nobody_answers_there_is_nobody_to_ask(host, monkeypatch) -> None:
    monkeypatch.setattr(etcd, "addresses", lambda *_: ["https://127.0.0.1:9"])
    etcd.leave(host, "192.0.2.2", timeout=0)
    assert Gateway.removed == []


def test_the_other_members_are_those_of_the_static_pod_and_of_the_api(tmp_path, monkeypatch) -> None:
    host = Host(etc=str(tmp_path))
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "etcd.yaml").write_text(POD)
    assert etcd.peer_url(host, "other") == OWN
    assert etcd.addresses(host, OWN) == ["https://192.0.2.1:2379", "https://[2001:db8::6]:2379"]
    (tmp_path / "admin.conf").touch()
    pods = [{"metadata": {"annotations": {etcd.CLIENT_URL: f"https://192.0.2.{last}:2379"}}} for last in (2, 4)]
    monkeypatch.setattr(etcd, "get_json", lambda *_: {"items": [*pods, {"metadata": {}}]})
    assert "https://192.0.2.4:2379" in etcd.addresses(host, OWN)
    assert "https://192.0.2.2:2379" not in etcd.addresses(host, OWN)


@pytest.mark.parametrize(("address", "url"), [("192.0.2.2", OWN), ("2001:db8::2", "https://[2001:db8::2]:2380")])
def test_a_host_without_a_static_pod_is_known_by_its_address(tmp_path, address: str, url: str) -> None:
    assert etcd.peer_url(Host(etc=str(tmp_path)), address) == url
    assert not etcd.is_member(Host(etc=str(tmp_path)))


def test_only_a_host_with_the_keys_is_a_member(host) -> None:
    assert etcd.is_member(host)
    Path(host.file("pki/apiserver-etcd-client.key")).unlink()
    assert not etcd.is_member(host)
