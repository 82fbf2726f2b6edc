"""host_preflight: who listens on a port that another program needs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.host.used_ports import port_problems as problems

OURS = os.path.basename(os.readlink("/proc/self/exe"))
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "   0: {address}:{port:04X} {rest} {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1\n"


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_taken_port_is_refused_with_its_holder_and_the_remedy(taken: int) -> None:
    (problem,) = map(str, problems({taken: "kubelet"}))
    assert f"{OURS} (process {os.getpid()}) listens on port {taken}, which kubelet needs" in problem
    assert "base_ports" in problem


def test_the_program_that_the_port_is_for_may_listen(taken: int) -> None:
    assert problems({taken: OURS}) == []


def test_a_connection_from_a_port_is_no_listener(taken: int) -> None:
    with socket.create_connection(("127.0.0.1", taken)) as client:
        assert problems({client.getsockname()[1]: "kubelet"}) == []


def make_proc(root: Path, program: str, table: str = "tcp", state: str = "0A", address: str = "00000000") -> str:
    """A /proc with one process, 812, that holds one socket on port 6443."""
    net = root / "proc/self/net"
    net.mkdir(parents=True)
    row = ROW.format(address=address, port=6443, rest=f"{address}:0000", state=state, inode=4711)
    (net / table).write_text(HEADER + row)
    descriptors = root / "proc/812/fd"
    descriptors.mkdir(parents=True)
    (descriptors / "3").symlink_to("socket:[4711]")
    (descriptors / "4").symlink_to("/dev/null")
    (root / "proc/812/exe").symlink_to(program)
    # A thread of the kernel has no program.
    (root / "proc/2").mkdir()
    return str(root)


@pytest.mark.parametrize(
    ("program", "options", "refused"),
    [
        ("/usr/sbin/haproxy", {}, True),
        ("/usr/sbin/haproxy", {"table": "tcp6", "address": "0" * 32}, True),
        ("/usr/sbin/haproxy", {"state": "01"}, False),
        ("/usr/local/bin/kube-apiserver", {}, False),
        ("/usr/local/bin/kube-apiserver (deleted)", {}, False),
    ],
)
def test_sockets_of_the_kernel(tmp_path: Path, program: str, options: dict[str, str], refused: bool) -> None:
    found = [str(each) for each in problems({6443: "kube-apiserver"}, make_proc(tmp_path, program, **options))]
    assert bool(found) is refused
    assert not refused or found[0].startswith("haproxy (process 812) listens on port 6443, which kube-apiserver needs.")
