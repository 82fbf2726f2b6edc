"""_check_cluster.yml before an API server of these tests: a port that is taken stops a run at its beginning."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.playbooks.runs import ROOT, copy, play, stubs

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

TAKEN = "The port 30443 of the nodes (dashboard_node_port) is held by the Service web/shop"
SHOP = {
    "kind": "Service",
    "metadata": {"name": "shop", "namespace": "web"},
    "spec": {"ports": [{"port": 80, "nodePort": 30443}]},
}
ASKED = "GET /api/v1/services"


@pytest.fixture
def api() -> Iterator[tuple[str, ApiServer]]:
    """Address of an API server with a Service on port 30443, and the server."""
    server = ApiServer({"/api/v1/namespaces/web/services/shop": SHOP})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = server("GET", self.path.partition("?")[0], [], None, "")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}", server
        listening.shutdown()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The playbooks with the real role and the real modules."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    copy(folder)
    (folder / "library").rmdir()
    for name in ("library", "roles"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def look(checkout: Path, folder: Path, address: str, *arguments: str) -> tuple[int, str]:
    """Run the play; its status and its output."""
    kubeconfig = folder / "kubeconfig"
    named = {"name": "it", "cluster": {"server": address}}
    context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
    user = {"name": "it", "user": {"token": "none"}}
    content = {"clusters": [named], "contexts": [context], "users": [user], "current-context": "it"}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **content}), encoding="utf-8")
    given = {"control_plane_kubeconfig": str(kubeconfig), "dashboard_exposure": "node_port", "supply": "vendors"}
    status, _, output = play(checkout, folder, "playbooks/_check_cluster.yml", "-e", json.dumps(given), *arguments)
    return status, output


@pytest.mark.parametrize("arguments", [(), ("--check", "--limit", "localhost,w1")])
def test_a_port_that_is_taken_is_refused(
    checkout: Path, tmp_path: Path, api: tuple[str, ApiServer], arguments: tuple[str, ...]
) -> None:
    status, output = look(checkout, tmp_path, api[0], *arguments)
    assert status == 2 and TAKEN in output, output
    assert api[1].writes == []


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("-e", "dashboard_node_port=30500", "-e", "site_hosts=w1"), True),
        (("-e", "dashboard_exposure=cluster_ip"), False),
        (("-e", '{"site_objects": false}'), False),
        (("-e", "control_plane_kubeconfig=/nonexistent"), False),
    ],
)
def test_runs_that_take_no_port_from_anybody(
    checkout: Path, tmp_path: Path, api: tuple[str, ApiServer], arguments: tuple[str, ...], asked: bool
) -> None:
    status, output = look(checkout, tmp_path, api[0], *arguments)
    assert status == 0, output
    assert (ASKED in api[1].calls) is asked


def test_a_run_that_may_mend_the_api_server_goes_on(checkout: Path, tmp_path: Path) -> None:
    status, output = look(checkout, tmp_path, "http://127.0.0.1:1")
    assert status == 0, output
    assert "Not checked whether the ports of dashboard_node_port, dashboard_tensorboard_node_port are free" in output


def test_nothing_of_a_site_is_changed_before(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    refusing = stubs(copy(folder))
    tasks = refusing / "roles/dashboard/tasks/preflight.yml"
    tasks.write_text("- name: Refuse\n  ansible.builtin.fail: {msg: A port is taken.}\n", encoding="utf-8")
    status, touched, output = play(refusing, tmp_path, "site.yml")
    assert status == 2 and "A port is taken." in output
    # The plays before look at the hosts, and leave files here because every fake does.
    assert "localhost" not in touched and "TASK [bundle :" not in output
    assert "PLAY [Prepare every host]" not in output
