"""Part `zoo_refused` of `make proof`: one lab whose nodes have the traits of other people's servers.

`check_hosts.yml` must give the expected result for each row, for exactly the expected reasons, and change nothing on
any node. A second call with the variables of `works_with` must accept those rows. Arguments choose rows by name.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.zoo.front import front  # noqa: E402
from tests.zoo.lab import LAB, NETWORK, Result, address_of, in_lab, play, reported  # noqa: E402
from tests.zoo.rows import REFUSED, WORKS, Row, rows  # noqa: E402


def host_of(row: Row) -> str:
    """Return the inventory's name of a row: the name of a host has no underscore."""
    return row.name.replace("_", "-")


def inventory(zoo: Sequence[Row], folder: Path, chosen: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write an inventory in which each row is a worker.

    :param chosen: variables of each host; `zoo_address` is the address that its interface has.
    """
    target = folder / "hosts.yml"
    hosts = {
        host_of(row): {
            "ansible_host": address_of(number),
            "zoo_address": address_of(number),
            "zoo_rows": [row.name],
            **chosen[row.name],
        }
        for number, row in enumerate(zoo)
    }
    groups = {
        "workers": {"hosts": hosts},
        "control_plane": {"hosts": {"cp1": {"ansible_host": f"{NETWORK}.10"}}},
        "mirror": {"hosts": {"mirror1": {"ansible_host": f"{NETWORK}.2"}}},
        "cluster": {"children": {"workers": None, "control_plane": None}},
        "lab_hosts": {"children": {"control_plane": None, "mirror": None}, "hosts": in_lab(hosts)},
    }
    # nodes.yml creates the nodes; a host with a front has another address in the inventory then.
    variables = {
        "lab_name": LAB, "lab_subnet": f"{NETWORK}.0/24", "lab_managed": False, "zoo_temporary": str(folder),
    }  # fmt: skip
    target.write_text(yaml.safe_dump({"all": {"children": groups, "vars": variables}}), encoding="utf-8")
    if not (folder / "group_vars").exists():
        (folder / "group_vars").symlink_to(ROOT / "inventories" / "lab" / "group_vars")
    return target


def snapshot(row: Row) -> str:
    """Return the state of a node that a check must not change."""
    command = ["podman", "exec", "-i", f"{LAB}-{host_of(row)}", "sh"]
    script = (ROOT / "tests" / "zoo" / "snapshot.sh").read_bytes()
    return subprocess.run(command, input=script, capture_output=True, check=True, timeout=120).stdout.decode()


def follow(host: str, found: Result) -> None:
    """Execute the commands of a host's remedies on the host."""
    for reason in found["reasons"]:
        for commands in re.findall(r"`([^`]+)`", reason["remedy"]):
            command = ["podman", "exec", f"{LAB}-{host}", "sh", "-ec", commands]
            subprocess.run(command, check=True, timeout=60)


def faults(row: Row, found: Result, expected: str) -> list[str]:
    """Return the differences between a row and the report of its host."""
    wrong = [] if found["state"] == expected else [f"{found['state']}, expected {expected}: {found['reasons']}"]
    if expected == WORKS:
        if row.report and not re.search(row.report, found["about"]):
            wrong.append(f"the report is {found['about']!r}")
        return wrong
    left = list(found["reasons"])
    for reason in row.reasons:
        fits = [
            each
            for each in left
            if each["code"] == reason.code
            and re.search(reason.cause, each["cause"])
            and re.search(reason.remedy, each["remedy"])
        ]
        if fits:
            left.remove(fits[0])
        else:
            wrong.append(f"no reason fits {reason}")
    return wrong + [f"an unexpected reason: {each}" for each in left]


def judge(zoo: Sequence[Row], folder: Path, fronts: ExitStack) -> list[str]:
    """Create the lab, check it twice, and return all faults.

    :param fronts: has the addresses of the controller that lead to hosts.
    """
    as_they_are = {row.name: row.variables for row in zoo}
    hosts = inventory(zoo, folder, as_they_are)
    status, output = play("tests/zoo/nodes.yml", hosts, folder / "nodes.log")
    if status:
        raise SystemExit(f"The nodes cannot be prepared: {output[-8000:]}")
    for number, row in enumerate(zoo):
        if row.front:
            as_they_are[row.name] = {**row.variables, **fronts.enter_context(front(address_of(number)))}
    helped = {row.name: {**as_they_are[row.name], **row.works_with} for row in zoo}
    inventory(zoo, folder, as_they_are)
    before = {row.name: snapshot(row) for row in zoo}
    status, found = reported(hosts, folder / "check.log")
    wrong = [f"{row.name}: {fault}" for row in zoo for fault in faults(row, found[host_of(row)], row.expected)]
    wrong += [] if status == 2 else [f"check_hosts.yml ended with {status}, although it refused hosts"]
    unchanged = {row.name: snapshot(row) for row in zoo}
    for row in zoo:
        if row.commands:
            follow(host_of(row), found[host_of(row)])
    inventory(zoo, folder, helped)
    _, found = reported(hosts, folder / "helped.log")
    for row in zoo:
        expected = WORKS if row.works_with or row.commands else row.expected
        wrong += [f"{row.name} with {row.works_with}: {fault}" for fault in faults(row, found[host_of(row)], expected)]
        after = unchanged[row.name]
        if row.expected == REFUSED and after != before[row.name]:
            changed = set(after.splitlines()) ^ set(before[row.name].splitlines())
            wrong.append(f"{row.name} was changed: {sorted(changed)[:10]}")
    return wrong


def main(names: Sequence[str]) -> int:
    zoo = [row for row in rows() if row.kind == "container" and (not names or row.name in names)]
    with tempfile.TemporaryDirectory(prefix="zoo-") as name, ExitStack() as fronts:
        folder = Path(name)
        try:
            wrong = judge(zoo, folder, fronts)
        finally:
            play("playbooks/lab_down.yml", folder / "hosts.yml", folder / "down.log")
        for row in zoo:
            print(f"{row.name}: {'; '.join(each for each in wrong if each.startswith(row.name)) or row.expected}")
        print(*(each for each in wrong if not each.startswith(tuple(row.name for row in zoo))), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
