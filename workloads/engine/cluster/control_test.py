"""Tests of the connections between servers and chief, with real sockets and processes."""

from __future__ import annotations

import json
import queue
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from engine.cluster import membership
from engine.cluster.cluster_spec import parse
from engine.cluster.membership import HERE, LEAVING, LOST, Listener, port
from tests.trainings import processes

pytestmark = pytest.mark.slow  # Most tests wait for a timeout.

WORKLOADS = Path(__file__).parents[2]
SERVER = """
import os, socket
from engine.cluster.cluster_spec import parse
from engine.cluster.membership import Link
from engine.cluster.preemption import Preemption
preemption = Preemption()
cluster = parse(os.environ["TF_CONFIG"])
server = socket.create_server(("127.0.0.1", int(cluster.address.rpartition(":")[2])))
link = Link(cluster, lambda: os._exit(43))
link.start()
preemption.defer(lambda: (link.leave(), os._exit(42)))
while True:
    server.accept()[0].close()
"""


class Cluster:
    """A chief's listener in this process, and servers in other processes."""

    def __init__(self, addresses=None):
        chief, ps, *workers = addresses or processes.addresses(4)
        self.members = {"chief": [chief], "ps": [ps], "worker": workers}
        self.spec = parse(self.config("chief", 0))
        self.stopping = False
        self.told = queue.Queue()
        self.servers = {}
        self.listener = Listener(self.spec, lambda *news: self.told.put(news), lambda: self.stopping)
        self.listener.start()

    def config(self, role, index):
        return json.dumps({"cluster": self.members, "task": {"type": role, "index": index}})

    def start(self, role, index=0):
        env = {"PYTHONPATH": str(WORKLOADS), "TF_CONFIG": self.config(role, index)}
        process = subprocess.Popen([sys.executable, "-c", SERVER], env=env)
        self.servers[f"{role} {index}"] = process
        self.until(lambda: f"{role} {index}" not in self.listener.missing())
        return process

    def connect(self, *lines):
        stranger = socket.create_connection(("127.0.0.1", port(self.spec)), 5)
        for line in lines:
            stranger.sendall(line)
        return stranger

    def news(self, seconds=10):
        return self.told.get(timeout=seconds)[:2]

    def break_connections(self):
        for connection in list(self.listener._connections):
            connection.socket.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def until(true):
        deadline = time.monotonic() + 20
        while not true():
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.listener.stop()
    for process in made.servers.values():
        process.kill()
        process.wait()


def test_who_has_called_is_not_missing(cluster):
    assert cluster.listener.missing() == ["ps 0", "worker 0", "worker 1"]
    cluster.start("worker", 1)
    assert cluster.listener.missing() == ["ps 0", "worker 0"]


def test_a_leaving_ps_serves_on_until_the_chief_hangs_up(cluster):
    ps = cluster.start("ps")
    ps.terminate()
    assert cluster.news() == ("ps 0", LEAVING)
    time.sleep(3)
    assert ps.poll() is None, "it ended before the chief had saved"
    cluster.listener.stop()
    cluster.listener.join()
    cluster.break_connections()
    assert ps.wait(5) == 42


def test_a_leaving_worker_is_let_go_while_the_run_goes_on(cluster, monkeypatch):
    monkeypatch.setattr(membership, "RELEASE_SECONDS", 1.0)
    worker = cluster.start("worker")
    cluster.stopping = True
    worker.terminate()
    assert cluster.news() == ("worker 0", LEAVING)
    time.sleep(2)
    assert worker.poll() is None, "the stopping chief still needs it"
    cluster.stopping = False
    assert worker.wait(5) == 42
    assert cluster.news() == ("worker 0", LOST)
    cluster.start("worker")
    assert cluster.news() == ("worker 0", HERE)


def test_a_leaving_worker_that_falls_silent_is_lost(cluster, monkeypatch):
    monkeypatch.setattr(membership, "SILENT_SECONDS", 5.0)
    worker = cluster.start("worker")
    worker.terminate()
    assert cluster.news() == ("worker 0", LEAVING)
    worker.send_signal(signal.SIGSTOP)
    assert cluster.news() == ("worker 0", LOST)


@pytest.mark.parametrize("finished", [False, True])
def test_a_server_that_nobody_needs_leaves_at_once(cluster, finished):
    ps = cluster.start("ps")
    cluster.listener.stop(finished=finished)
    if not finished:  # After the end of the run the chief may still exist without answering.
        cluster.listener.join()
        cluster.listener._server.close()
        cluster.break_connections()
    ps.terminate()
    assert ps.wait(5) == 42


@pytest.mark.parametrize("role", ["ps", "worker"])
def test_a_killed_server_is_lost_at_once(cluster, role):
    process = cluster.start(role)
    begun = time.monotonic()
    process.kill()
    assert cluster.news() == (f"{role} 0", LOST)
    assert time.monotonic() - begun < 3


def test_a_silent_worker_is_lost_and_ends_when_it_wakes_up(cluster, monkeypatch):
    monkeypatch.setattr(membership, "SILENT_SECONDS", 5.0)
    process = cluster.start("worker")
    process.send_signal(signal.SIGSTOP)
    assert cluster.news() == ("worker 0", LOST)
    # Its machine still accepts connections, but no process answers on them.
    host, _, number = cluster.members["worker"][0].rpartition(":")
    with socket.create_connection((host, int(number)), 5) as late:
        assert late.recv(1) == b""
    process.send_signal(signal.SIGCONT)
    assert process.wait(5) == 43
    cluster.start("worker")
    assert cluster.news() == ("worker 0", HERE)


def test_a_worker_that_was_given_up_is_not_taken_back(cluster, monkeypatch):
    monkeypatch.setattr(membership, "SILENT_SECONDS", 2.0)
    with cluster.connect(b"hello worker 0 first\n") as worker:
        assert cluster.news() == ("worker 0", LOST)
        assert worker.recv(100) == b"lost\n" and worker.recv(100) == b""
    with cluster.connect(b"hello worker 0 first\n") as worker:
        assert worker.recv(100) == b"lost\n" and worker.recv(100) == b""
    assert cluster.told.empty()


def test_a_short_break_loses_nobody_even_if_it_is_told_to_stop_meanwhile(cluster):
    ps = cluster.start("ps")
    cluster.break_connections()
    with pytest.raises(queue.Empty):
        cluster.news(4)
    cluster.break_connections()
    ps.terminate()
    assert cluster.news() == ("ps 0", LEAVING)
    time.sleep(1)
    assert ps.poll() is None


def test_a_ps_that_is_another_process_is_lost(cluster):
    with cluster.connect(b"hello ps 0 first\n"):
        cluster.until(lambda: "ps 0" not in cluster.listener.missing())
        with cluster.connect(b"hello ps 0 second\n"):
            assert cluster.news() == ("ps 0", LOST)


@pytest.mark.parametrize(
    "lines",
    [
        b"leaving\nalive\n",
        b"hello\nhello ps\nhello ps 0\nhello ps 7 x\nhello chief 0 x\nhello ps 0 x y\nleaving\n",
        b"\xff\xfe\n\n\x00\n",
        b"GET / HTTP/1.1\r\nHost: chief\r\n\r\n",
        b"x" * 100_000,
        b"",
    ],
)
def test_what_is_no_line_of_ours_changes_nothing_and_is_hung_up_on(cluster, monkeypatch, lines):
    monkeypatch.setattr(membership, "HELLO_SECONDS", 1.0)
    cluster.start("ps")
    with cluster.connect() as stranger, suppress(ConnectionError):  # closed in the middle of its line
        stranger.sendall(lines)
        assert stranger.recv(1) == b""
    assert cluster.told.empty()
    assert cluster.listener.missing() == ["worker 0", "worker 1"]


def test_a_flood_of_connections_is_limited_and_ends(cluster, monkeypatch):
    monkeypatch.setattr(membership, "HELLO_SECONDS", 2.0)
    flood = [cluster.connect() for _ in range(60)]
    cluster.until(lambda: len(cluster.listener._connections) == 28)
    cluster.until(lambda: not cluster.listener._connections)
    for each in flood:
        each.close()
    cluster.start("ps")


def test_many_that_hang_up_and_do_not_answer_are_all_lost(monkeypatch):
    monkeypatch.setattr(membership, "SILENT_SECONDS", 4.0)
    with ExitStack() as opened:
        silent = []
        for _ in range(8):
            # With a full connection queue it never answers, like a machine without power.
            server = opened.enter_context(socket.socket())
            server.bind(("127.0.0.1", 0))
            server.listen(0)
            opened.enter_context(socket.create_connection(server.getsockname(), 5))
            silent.append(f"127.0.0.1:{server.getsockname()[1]}")
        cluster = Cluster([processes.addresses(1)[0], *silent])
        try:
            there = [cluster.connect(f"hello worker {index} x\n".encode()) for index in range(7)]
            cluster.until(lambda: cluster.listener.missing() == ["ps 0"])
            for each in there:
                each.close()
            assert {cluster.news(15) for _ in range(7)} == {(f"worker {index}", LOST) for index in range(7)}
        finally:
            cluster.listener.stop()
