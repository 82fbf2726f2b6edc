"""Tests that the red team's hostile worker acts as described, and that harm to others is detected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import red_node
import red_node_attacks as attacks
import red_node_guards
import red_node_python as hostile
import yaml
from drift_lab import Ran

ITEM = {"key": "k", "host": "cp1", "task": "t", "subject": "s", "via": "", "first_seen": 1.0}


def report(*items: dict[str, Any], **hosts: str) -> dict[str, Any]:
    states = {name: {"state": state, "items": 0} for name, state in {"cp1": "clean", **hosts}.items()}
    return {"id": "r", "hosts": states, "items": list(items)}


@pytest.mark.parametrize("mode", hostile.MODES)
def test_each_mode_is_an_answer(tmp_path: Path, mode: str) -> None:
    (tmp_path / "mode").write_text(f"{mode} cp1")
    # The kernel ends the path of an interpreter at a space, which the path of this project may contain.
    (tmp_path / "real").symlink_to(sys.executable)
    (tmp_path / "python").write_text(f"#!{tmp_path / 'real'}\n{Path(hostile.__file__).read_text(encoding='utf-8')}")
    (tmp_path / "python").chmod(0o755)
    module = b'print(\'{"changed": false, "ping": "pong"}\')'
    done = subprocess.run([str(tmp_path / "python")], input=module, capture_output=True, check=True, timeout=60)
    answer = json.loads(done.stdout)
    assert answer.get("ping", "pong") == "pong" and (mode == "honest") == (answer == {"changed": False, "ping": "pong"})
    assert mode != "flood" or len(done.stdout) >= 20_000_000 - 100
    said = subprocess.run([str(tmp_path / "python"), "-c", "print(1)"], capture_output=True, check=True, timeout=60)
    assert said.stdout == b"1\n", "a program with arguments is not a module"


def test_a_report_is_compared_without_the_attacker() -> None:
    before = Ran(0, 1.0, report(worker2="clean")), 10**8
    mine = {**ITEM, "host": "worker2"}
    assert (
        red_node.judged(before, (Ran(1, 1.0, report(mine, {**ITEM, "via": "worker2"}, worker2="drift")), 10**8)) == []
    )
    assert red_node.judged(before, (Ran(1, 1.0, report(ITEM, worker2="drift")), 10**8)) == [
        "report: item cp1 t s is new"
    ]
    assert red_node.judged(before, (Ran(1, 1.0, report(cp1="unknown")), 10**8)) == ["report: host cp1 was changed"]
    assert len(red_node.judged(before, (Ran(5, 1.0, report()), 10**9))) == 2
    old, young = ({**ITEM, "first_seen": each} for each in (1.0, 2.0))
    assert red_node.of_others(report(old)) == red_node.of_others(report(young))


def test_what_a_run_leaves_is_looked_at(tmp_path: Path) -> None:
    stand: Any = mock.Mock(state=tmp_path, folder=tmp_path)
    (tmp_path / "r.txt").write_text("fine\n")
    assert red_node.written(stand, "r") == ["the run r has left no file"]
    (tmp_path / "reprovision" / "runs" / "r").mkdir(parents=True)
    (tmp_path / "reprovision" / "runs" / "r" / "report.md").write_text("a\x1b[2J")
    assert red_node.written(stand, "r") == ["report.md has the byte '\\x1b'"]


def test_requests_are_what_openssl_makes() -> None:
    subject, signer = attacks.WANTED["red-serving"]
    made = attacks.request("red-serving", subject, signer)
    assert made["spec"]["usages"] == ["digital signature", "server auth"]
    done = subprocess.run(["base64", "-d"], input=made["spec"]["request"].encode(), capture_output=True, check=True)
    assert done.stdout.startswith(b"-----BEGIN CERTIFICATE REQUEST-----")


def test_scripts_are_shell_and_undo_each_other(tmp_path: Path) -> None:
    """Run the scripts in a folder instead of `/`: the link and the facts are created, and restored afterwards."""
    for name in ("usr/bin", "etc", "opt", "bin"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "usr/bin/python3").symlink_to(sys.executable)
    (tmp_path / "bin/systemctl").write_text("#!/bin/sh\n")
    (tmp_path / "bin/systemctl").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}

    def run(text: str) -> None:
        for name in ("/usr/bin/python3", "/etc/ansible", "/opt/red-node"):
            text = text.replace(name, f"{tmp_path}{name}")
        subprocess.run(["sh", "-ec", text], input=b"pass\n", env=env, check=True, timeout=60)

    run(attacks.INSTALL)
    assert (tmp_path / "opt/red-node/python").read_text().startswith("#!/")
    assert (tmp_path / "usr/bin/python3").readlink() == tmp_path / "opt/red-node/python"
    facts = json.loads((tmp_path / "etc/ansible/facts.d/red.fact").read_text())
    assert facts == {"x": hostile.TEMPLATE, "{{ 1 }}": 1}
    run(attacks.RESTORE)
    assert os.readlink(tmp_path / "usr/bin/python3") == sys.executable
    assert not (tmp_path / "opt/red-node").exists() and not (tmp_path / "etc/ansible").exists()
    subprocess.run(["sh", "-n", "-c", attacks.ANOTHER_KUBELET], check=True, timeout=10)


def test_the_question_is_a_playbook() -> None:
    (play,) = yaml.safe_load(red_node_guards.ASK)
    assert play["hosts"] == "ATTACKER:VICTIM" and set(red_node.LOOKING) < set(hostile.MODES)
