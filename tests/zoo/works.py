"""Parts of `make proof` that build a site on hosts of the zoo: works.py PART, a key of sites.yml.

The site reaches a passing verdict, a second run has changed=0, all hosts restart, and the verdict passes again. Then
the hosts still have the properties of their owners (`keeps`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.zoo.front import front  # noqa: E402
from tests.zoo.lab import LAB, NETWORK, address_of, in_lab, play, reported  # noqa: E402
from tests.zoo.refused import follow  # noqa: E402
from tests.zoo.rows import Row, rows  # noqa: E402
from trainyard.host.port_probe import Target, unreached  # noqa: E402

SITES: Mapping[str, Mapping[str, Any]] = yaml.safe_load((ROOT / "tests/zoo/sites.yml").read_text(encoding="utf-8"))
CHANGED = re.compile(r"changed=([0-9]+)")
RESTART = 600.0
"""Seconds in which the verdict of a restarted site must pass."""
SCANNED = (22, 111, 2379, 2380, 4789, 5000, 443, 6443, 8080, 9099, 10248, 10249, 10250, 10256, 10257, 10259)
"""Ports of the page of ports, of the host itself, and some of other programs."""


def inventory(part: str, folder: Path, fronts: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write the inventory of a site: cp* are control planes, worker* are workers; a mirror serves all.

    :param fronts: variables of the hosts that have an address of the controller.
    """
    site = SITES[part]
    names = [name for name in site["hosts"] if name.startswith("worker")]
    hosts = {
        name: {
            "ansible_host": address_of(number), "zoo_address": address_of(number), **values, **fronts.get(name, {})
        }
        for number, (name, values) in enumerate(site["hosts"].items())
    }  # fmt: skip
    groups = {
        "workers": {"hosts": {name: hosts[name] for name in names}},
        "control_plane": {"hosts": {name: hosts[name] for name in hosts if name not in names}},
        "mirror": {"hosts": {"mirror1": {"ansible_host": f"{NETWORK}.2"}}},
        "cluster": {"children": {"workers": None, "control_plane": None}},
        "lab_hosts": {"children": {"mirror": None}, "hosts": in_lab(hosts)},
    }
    # The lab does not create hosts that the inventory has at another address.
    variables = {
        "lab_name": LAB, "lab_subnet": f"{NETWORK}.0/24", "lab_managed": not fronts, "zoo_temporary": str(folder),
    }  # fmt: skip
    target = folder / "hosts.yml"
    target.write_text(yaml.safe_dump({"all": {"children": groups, "vars": {**variables, **site.get("variables", {})}}}))
    if not (folder / "group_vars").exists():
        (folder / "group_vars").symlink_to(ROOT / "inventories/lab/group_vars")
    return target


def rows_of(part: str) -> dict[str, list[Row]]:
    """Return the rows of each host of a site."""
    by_name = {row.name: row for row in rows()}
    return {name: [by_name[row] for row in host.get("zoo_rows", [])] for name, host in SITES[part]["hosts"].items()}


def prepare(part: str, folder: Path, fronts: ExitStack) -> Path:
    """Create the nodes, and execute the commands that the report has for them; return the inventory of the site."""
    hosts = inventory(part, folder, {})
    status, output = play("tests/zoo/nodes.yml", hosts, folder / "nodes.log")
    if status:
        raise SystemExit(f"The nodes cannot be prepared: {output[-8000:]}")
    has = rows_of(part)
    hosts = inventory(part, folder, {
        name: fronts.enter_context(front(address_of(number)))
        for number, name in enumerate(has) if any(row.front for row in has[name])
    })  # fmt: skip
    if wanted := [name for name in has if any(row.commands for row in has[name])]:
        _, found = reported(hosts, folder / "check.log")
        for name in wanted:
            follow(name, found[name])
    return hosts


def build(hosts: Path, folder: Path) -> list[str]:
    """Build the site, and run its playbook a second time; return the faults."""
    wrong = []
    status, output = play("site.yml", hosts, folder / "first.log")
    # A verdict that does not pass is an error of the playbook.
    if status:
        raise SystemExit(f"site.yml ended with {status}: {output[-12000:]}")
    status, output = play("site.yml", hosts, folder / "second.log")
    recap = output[output.rindex("PLAY RECAP") :] if "PLAY RECAP" in output else ""
    if status or set(CHANGED.findall(recap)) != {"0"}:
        wrong.append(f"the second run ended with {status}: {recap}")
    return wrong


def restart(names: Sequence[str], hosts: Path, folder: Path) -> list[str]:
    """Restart all hosts at once, as after a power cut; return the faults of the verdict."""
    containers = [f"{LAB}-{name}" for name in names]
    subprocess.run(["podman", "restart", "--time=0", *containers], check=True, timeout=120, stdout=subprocess.DEVNULL)
    end, output = time.monotonic() + RESTART, ""
    while time.monotonic() < end:
        status, output = play("verify.yml", hosts, folder / "verify.log")
        if status == 0:
            return []
        time.sleep(5)
    return [f"the verdict does not pass after the restart: {output[-6000:]}"]


def scan(part: str) -> list[str]:
    """Connect from this machine, which is the controller and no host of the site; return the wrong ports."""
    wrong = []
    for number, name in enumerate(SITES[part]["hosts"]):
        targets = [Target(name, address_of(number), port, "tcp", listens=False) for port in SCANNED]
        # A refused connection is an answer, too: the firewall lets the packet pass.
        silent = {target.port for target, _ in unreached(targets)}
        expected = {22, 6443} if name.startswith("cp") else {22}
        if (found := set(SCANNED) - silent) != expected:
            wrong.append(f"{name} answers at {sorted(found)}, expected {sorted(expected)}")
    return wrong


def lost(part: str) -> list[str]:
    """Return the properties of their owners that hosts no longer have."""
    wrong = []
    for name, has in rows_of(part).items():
        for row in has:
            command = ["podman", "exec", f"{LAB}-{name}", "sh", "-ec", row.keeps or "true"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            if done.returncode:
                wrong.append(f"{name} no longer has its {row.name}: {done.stdout}{done.stderr}")
    return wrong


def main(argv: list[str]) -> int:
    part = argv[0]
    with tempfile.TemporaryDirectory(prefix="zoo-") as name, ExitStack() as fronts:
        folder = Path(name)
        hosts = folder / "hosts.yml"
        try:
            wrong = build(prepare(part, folder, fronts), folder)
            wrong += scan(part) if SITES[part].get("scan") else []
            wrong += restart(["mirror1", *SITES[part]["hosts"]], hosts, folder)
            wrong += scan(part) if SITES[part].get("scan") else []
            wrong += lost(part)
        finally:
            play("playbooks/lab_down.yml", hosts, folder / "down.log")
    print(json.dumps({"part": part, "hosts": list(SITES[part]["hosts"]), "faults": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
