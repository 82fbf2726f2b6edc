"""Listeners and connections between two hosts, on loopback and for real."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.host import port_probe, used_ports
from trainyard.host.port_probe import Target, start, stop, unreached

LIMIT = 10.0


def free(protocol: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def target(port: int, protocol: str = "tcp", *, listens: bool = True, address: str = "127.0.0.1") -> Target:
    return Target("w1", address, port, protocol, listens)


def wait_gone(control: Path) -> None:
    end = time.monotonic() + LIMIT
    while control.exists():
        assert time.monotonic() < end, "the listener's process did not end"
        time.sleep(0.02)


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "probe.sock"
    yield path
    for run in ("a", "b"):
        stop(run, str(path))
    wait_gone(path)


def test_both_protocols_are_reached(control: Path) -> None:
    ports = [(free("tcp"), "tcp"), (free("udp"), "udp")]
    assert start(ports, "a", 60, str(control)) == ports
    assert unreached([target(*port) for port in ports]) == []


def test_a_port_of_another_program_is_left_alone(control: Path) -> None:
    with socket.create_server(("", 0)) as server:
        taken = server.getsockname()[1]
        other = free("tcp")
        assert start([(taken, "tcp"), (other, "tcp")], "a", 60, str(control)) == [(other, "tcp")]
        # Its program answers a connection. Without a listener, that is all that is asked.
        assert unreached([target(taken, listens=False)]) == []


def test_another_program_in_between_is_noticed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LIMIT)
        found = unreached([target(server.getsockname()[1])], timeout=0.3)
        assert [why for _, why in found] == ["no answer"]


def test_a_program_that_is_down_is_no_closed_port() -> None:
    closed = free("tcp")
    assert unreached([target(closed, listens=False)]) == []
    assert [why for _, why in unreached([target(closed)])] == ["refused"]
    assert [why for _, why in unreached([target(free("udp"), "udp")])] == ["refused"]


def test_many_silent_ports_take_one_timeout() -> None:
    """The queue of this server is full, so the kernel drops further connections as a firewall does."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        filling = [socket.socket() for _ in range(3)]
        for each in filling:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        time.sleep(0.1)
        started = time.monotonic()
        found = unreached([target(port, listens=False)] * 20, timeout=0.5)
        assert len(found) == 20 and time.monotonic() - started < 3
        for each in filling:
            each.close()


def test_two_runs_share_a_listener_until_the_last_one_stops(control: Path) -> None:
    port = (free("tcp"), "tcp")
    start([port], "a", 60, str(control))
    assert start([port], "b", 60, str(control)) == [port]
    stop("a", str(control))
    assert unreached([target(*port)]) == []
    stop("b", str(control))
    wait_gone(control)
    assert [why for _, why in unreached([target(*port)])] == ["refused"]


def test_the_listener_ends_by_itself(control: Path) -> None:
    start([(free("tcp"), "tcp")], "a", 0.2, str(control))
    wait_gone(control)


def test_a_second_run_extends_the_time(control: Path) -> None:
    port = (free("tcp"), "tcp")
    start([port], "a", 0.5, str(control))
    start([port], "b", 60, str(control))
    time.sleep(0.8)
    assert unreached([target(*port)]) == []


def test_an_address_of_another_family_is_a_reason() -> None:
    assert [host.port for host, _ in unreached([target(6443, address="fd00::7")], timeout=0.3)] == [6443]


def test_a_socket_that_a_killed_listener_left_is_replaced(control: Path) -> None:
    port = (free("tcp"), "tcp")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(control))
    assert start([port], "a", 60, str(control)) == [port]


def test_the_check_of_used_ports_leaves_the_listener_out(control: Path) -> None:
    port = free("tcp")
    start([(port, "tcp")], "a", 60, str(control))
    assert used_ports.port_problems({port: "kubelet"}) == []
    names = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout.split()
    assert port_probe.NAME in names


def test_the_listener_keeps_no_stream_of_its_caller(control: Path) -> None:
    """A connection of Ansible ends when the streams of its command are closed."""
    code = f"from trainyard.host.port_probe import start; start([({free('tcp')}, 'tcp')], 'a', 60, {str(control)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=LIMIT, check=True,
    )  # fmt: skip
    assert control.exists() and not done.stderr


def test_a_listener_answers_only_the_question(control: Path) -> None:
    port = free("udp")
    start([(port, "udp")], "a", 60, str(control))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.3)
        client.sendto(b"x" * 64, ("127.0.0.1", port))
        with pytest.raises(TimeoutError):
            client.recv(64)
    assert len(port_probe.QUESTION) == len(port_probe.ANSWER)
