"""What is read of the console: over a node's port as a browser would, and from its Secret where there is none."""

from __future__ import annotations

import base64
import http.server
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.certificates import pair_file, self_signed, tls_server
from trainyard.kube.api import Api, describe
from trainyard.unmanaged.foreign import World
from trainyard.verify.access_checks import ConsoleSeen, observe_access
from trainyard.verify.certificate import covers, trouble_of

NOW = datetime.now(UTC)
SPACE = "/api/v1/namespaces/trainyard-console"
CONFIG = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"


class Healthy(http.server.BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


class Troubled(Healthy):
    status = 503


def cluster(pem: str = "", node_port: int = 0, replicas: int = 1, serving: str = "true") -> ApiServer:
    port = {"name": "https", "port": 8443, **({"nodePort": node_port} if node_port else {})}
    pod = {
        "metadata": {"name": "console-1", "labels": {"app.kubernetes.io/name": "console"}},
        "status": {"hostIP": "127.0.0.1"},
    }
    return ApiServer(
        {
            "/apis/apps/v1/namespaces/trainyard-console/deployments/console": {
                "metadata": {"name": "console"},
                "status": {"availableReplicas": replicas},
            },
            f"{SPACE}/services/console": {"metadata": {"name": "console"}, "spec": {"ports": [port]}},
            f"{SPACE}/pods/console-1": pod,
            f"{SPACE}/secrets/console-tls": {
                "metadata": {"name": "console-tls"},
                "data": {"tls.crt": base64.b64encode(pem.encode()).decode()},
            },
            CONFIG: {"metadata": {"name": "kubelet-config"}, "data": {"kubelet": f"serverTLSBootstrap: {serving}\n"}},
            "/apis/metrics.k8s.io/v1beta1/nodes": {"items": [{"metadata": {"name": "cp1"}}]},
        }
    )


def console(server: ApiServer, **wanted: Any) -> ConsoleSeen:
    found = observe_access(Api(server), {"ca_file": "", "name": "", "user": "", **wanted}, NOW).console
    assert isinstance(found, ConsoleSeen)
    return found


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return pair_file(tmp_path / "server.pem", *self_signed(days=(-1, 20), name="localhost"))


def test_at_a_nodes_port(pair: Path) -> None:
    with tls_server(Healthy, pair) as url:
        found = console(cluster(node_port=int(url.rpartition(":")[2])), ca_file=str(pair))
    assert (found.address, found.trouble) == (url, "")
    assert found.ends and timedelta(days=19) < found.ends - NOW < timedelta(days=21)


@pytest.mark.parametrize(
    ("handler", "wanted", "told"),
    [
        (Troubled, {}, "answers /healthz with status 503"),
        (Healthy, {"name": "console.example.org"}, "certificate refused"),
        (Healthy, {"ca_file": "/nonexistent"}, "the CA file /nonexistent does not exist"),
    ],
)
def test_at_a_nodes_port_in_trouble(pair: Path, handler: Any, wanted: dict[str, str], told: str) -> None:
    with tls_server(handler, pair) as url:
        found = console(cluster(node_port=int(url.rpartition(":")[2])), **{"ca_file": str(pair), **wanted})
    assert told in found.trouble


def test_behind_a_port_forward_alone(pair: Path) -> None:
    found = console(cluster(pair.read_text()), ca_file=str(pair))
    assert (found.address, found.trouble) == ("", "") and found.ends


def test_no_console() -> None:
    assert console(ApiServer({})).trouble == "this cluster has no console"
    assert console(cluster(replicas=0)).trouble == "its pod is not ready"


@pytest.mark.parametrize(("serving", "expected"), [("true", True), ("false", False)])
def test_the_rest(serving: str, expected: bool) -> None:
    found = observe_access(Api(cluster(serving=serving)), {}, NOW)
    assert (found.serving, found.usage, found.requests) == (expected, ["cp1"], [])
    assert isinstance(found.world, World)
    names = [describe(each) for each in found.world.objects]
    assert names == ["Service console", "Pod console-1", "Deployment console"]


def test_metrics_server_that_does_not_answer_knows_no_node() -> None:
    server = cluster()
    server.objects["/apis/metrics.k8s.io/v1beta1/nodes"] = 503
    assert observe_access(Api(server), {}, NOW).usage == []


@pytest.mark.parametrize(
    ("days", "name", "authority", "told"),
    [
        ((-1, 20), "localhost", "own", ""),
        ((-1, 20), "127.0.0.1", "", ""),
        ((-3, -1), "localhost", "own", "its certificate expired on"),
        ((1, 20), "localhost", "own", "its certificate is not valid before"),
        ((-1, 20), "console.example.org", "own", "its certificate is not for console.example.org"),
        ((-1, 20), "localhost", "other", "its certificate is not issued by its CA"),
    ],
)
def test_trouble(days: tuple[int, int], name: str, authority: str, told: str) -> None:
    own, _ = self_signed(days=days)
    given = {"own": own, "other": self_signed()[0], "": ""}[authority]
    ends, trouble = trouble_of(own.encode(), given.encode(), name, NOW)
    assert ends and trouble.startswith(told) and bool(trouble) == bool(told)


def test_what_is_no_certificate() -> None:
    assert trouble_of(b"", b"", "localhost", NOW) == (None, "its certificate cannot be read")


@pytest.mark.parametrize(
    ("names", "name", "expected"),
    [
        (["a.example.org"], "A.example.org.", True),
        (["*.example.org"], "a.example.org", True),
        (["*.example.org"], "a.b.example.org", False),
        (["10.1.0.5"], "10.1.0.5", True),
        (["*.1.0.5"], "10.1.0.5", False),
        ([], "a", False),
    ],
)
def test_covers(names: list[str], name: str, expected: bool) -> None:
    assert covers(names, name) is expected
