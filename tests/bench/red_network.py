#!/usr/bin/env python3
"""Hold connections to a lab's servers without credentials, and check that each still answers a legitimate client.

    .venv/bin/python tests/bench/red_network.py [--inventory inventories/lab --lab trainyard]

The attacker is a worker of the lab, so that its address differs from that of the client, this machine. Console,
registry, apt server and API server each get 1,000 connections, and 300 stalled handshakes, headers and bodies.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import page
import red
import yaml
from drift_shapes import hostvars
from red_console import MOST_MEMORY, Visitor, console_memory, restarts
from red_part import run_part
from stand import Stand
from timed import BenchError

from trainyard.core.errors import TrainyardError

KINDS = {"connect": 1000, "handshake": 300, "headers": 300, "body": 300}
"""Kind of unfinished request -> simultaneous connections."""
ATTACK_SECONDS, WARM_UP = 20.0, 5.0
AIM_SECONDS = 2.0
ATTACKER = "worker2"
LOAD = Path(__file__).with_name("red_load.py")
NAME = "mirror.trainyard.internal"
HEAD = ["server", "connections", "at most open", "a client's longest wait", "aim"]


@dataclass(frozen=True)
class Server:
    """A server under attack.

    :param answers: sends a request like a legitimate client; raises an error without a correct answer.
    """

    address: str
    port: int
    answers: Callable[[], object]


def fetch(address: str, port: int, name: str, authority: Path, path: str) -> bytes:
    """Return the answer of a server, with its certificate checked for its name.

    :raises BenchError: the status is not 200.
    """
    trusted = ssl.create_default_context(cafile=str(authority))
    asked = http.client.HTTPSConnection(name, port, timeout=20)
    try:
        plain = socket.create_connection((address, port), timeout=20)
        asked.sock = trusted.wrap_socket(plain, server_hostname=name)
        asked.request("GET", path)
        answer = asked.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise BenchError(f"{name}:{port}{path} is answered with {answer.status}.")
        return body
    finally:
        asked.close()


def direct(address: str) -> bool:
    """Return whether an address is on a network of this machine, so that nothing leaves it."""
    said = subprocess.run(
        ["ip", "-json", "route", "get", address], capture_output=True, text=True, check=True, timeout=10
    ).stdout
    return is_direct(json.loads(said))


def is_direct(routes: list[dict[str, str]]) -> bool:
    """Return whether routes from `ip` have no gateway."""
    return bool(routes) and all("gateway" not in each and "via" not in each for each in routes)


def page_of(visitor: Visitor) -> None:
    """Request a page of the console as a logged-in user."""
    status, _, _ = visitor.ask("/api/v1/runs")
    if status != 200:
        raise BenchError(f"The console answers with {status}.")


def servers(stand: Stand, visitor: Visitor) -> dict[str, Server]:
    """Return the servers of a lab.

    :raises BenchError: one of them is reached by a gateway.
    """
    hosts = hostvars(stand.inventory)
    mirror, plane = (str(hosts[name]["ansible_host"]) for name in ("mirror1", "cp1"))
    ca = stand.state / "mirror" / "ca.crt"
    signed = stand.on_node("mirror1", "sh", "-c", "ls /srv/mirror/apt-*/dists/*/InRelease").split()[0]
    index = f"/apt/dists/{signed.split('/')[-2]}/InRelease"
    found = {
        "console": Server(visitor.host, visitor.port, lambda: page_of(visitor)),
        "registry": Server(mirror, 5000, lambda: fetch(mirror, 5000, NAME, ca, "/v2/")),
        "apt server": Server(mirror, 443, lambda: fetch(mirror, 443, NAME, ca, index)),
        "API server": Server(plane, 6443, lambda: stand.api.call("GET", "/readyz")),
    }
    for name, each in found.items():
        if not direct(each.address):
            raise BenchError(f"The {name} at {each.address} is reached by a gateway: nothing is attacked.")
    return found


def attack(stand: Stand, subnet: str, server: Server, kind: str) -> tuple[dict[str, int], float]:
    """Return the attacker's connection counts, and the longest wait of a client meanwhile, in seconds.

    :raises BenchError: a client gets no answer, or the attack did not happen.
    """
    count = KINDS[kind]
    words = [subnet, server.address, str(server.port), kind, str(count), str(ATTACK_SECONDS)]
    command = ["podman", "exec", "-i", f"{stand.lab}-{ATTACKER}", "python3", "-", *words]
    with LOAD.open("rb") as script, subprocess.Popen(command, stdin=script, stdout=-1, stderr=-1) as process:
        try:
            time.sleep(WARM_UP)
            longest = 0.0
            while process.poll() is None:
                began = time.monotonic()
                server.answers()
                longest = max(longest, time.monotonic() - began)
                time.sleep(0.5)
            said, error = process.communicate(timeout=30)
        finally:
            process.kill()
    if process.returncode or not longest:
        raise BenchError(f"The attacker ended with {process.returncode}: {error.decode(errors='replace')[-500:]}")
    found: dict[str, int] = json.loads(said)
    if found["tried"] < count or not found["opened"]:
        raise BenchError(f"The attacker has tried {found} connections, not {count}.")
    return found, longest


def network(inventory: Path) -> str:
    """Return the lab's network from its inventory."""
    for file in (inventory / "group_vars" / "all").glob("*.yml"):
        if subnet := (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("lab_subnet"):
            return str(subnet)
    raise BenchError(f"{inventory} names no lab_subnet.")


def measure(stand: Stand) -> list[str]:
    """Attack one server after the other, and write the table; return the faults."""
    wrong: list[str] = []
    visitor = Visitor(stand.program("console")[1].strip().splitlines()[-1], stand.state / "console" / "ca.crt")
    if visitor.log_in(red.new_token(stand, "bob")) != 303:
        raise BenchError("The viewer cannot log in.")
    console, subnet = restarts(stand), network(stand.inventory)
    for name, server in servers(stand, visitor).items():
        for kind in KINDS:
            try:
                found, longest = attack(stand, subnet, server, kind)
            except (BenchError, TrainyardError, OSError, http.client.HTTPException) as error:
                wrong.append(f"{name}, {kind}: {type(error).__name__}: {error}")
                continue
            missed = longest > AIM_SECONDS
            wrong += [f"{name}, {kind}: a client waits {longest:.1f} s"] if missed else []
            aim = f"{AIM_SECONDS:.0f} s{', missed' if missed else ''}"
            row = [f"{name}: {kind}", str(found["tried"]), str(found["most"]), f"{longest:.2f} s", aim]
            page.write("red_network", HEAD, [row])
        used = console_memory(stand)
        wrong += [] if used < MOST_MEMORY else [f"after {name} the console has {used / 1e6:.0f} MB"]
    return wrong + ([] if restarts(stand) == console else ["the console was restarted"])


def main(argv: list[str]) -> int:
    return run_part("red_network", __doc__, measure, "each has answered", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
