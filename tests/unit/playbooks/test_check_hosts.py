"""check_hosts.yml reports all reasons of all hosts at once, and other hosts continue."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.playbooks.runs import ROOT

# Several seconds for each run.
pytestmark = pytest.mark.slow

PREFLIGHT = """
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        import json, os
        if task_vars["inventory_hostname"] == os.environ.get("LOST"):
            return {"unreachable": True, "msg": "The connection is lost"}
        reasons = json.loads(os.environ["REASONS"]).get(task_vars["inventory_hostname"], [])
        if reasons:
            return {"failed": True, "msg": "The host cannot be a node", "reasons": reasons}
        host = {"system": "debian-13", "machine": "x86_64", "machine_id": os.environ["MACHINE_ID"]}
        return {"host": host, "cluster": {}, "ansible_facts": {"cluster_is_known": True}}
"""
OWN = "{{ ansible_facts['all_ipv4_addresses'][0] }}"
INVENTORY: dict[str, Any] = {
    "all": {
        "vars": {
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": sys.executable,
            "control_plane_kubeconfig": "/nonexistent",
            "control_plane_endpoint": "127.0.0.1:6443",
            "site_dir": "/nonexistent",
            "supply": "vendors",
        },
        "children": {
            "control_plane": {"hosts": {"cp1": {"kubernetes_node_ip": OWN}}},
            "workers": {
                "hosts": {
                    "w1": {
                        "kubernetes_node_ip": "192.0.2.7",
                        "control_plane_endpoint": "endpoint.invalid:6443",
                    },
                    "w2": {"base_apt_exclusive": True, "base_apt_sources": [], "kubernetes_node_ip": OWN},
                    "w3": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
                }
            },
            "cluster": {"children": {"control_plane": None, "workers": None}},
        },
    }
}
MEMORY = {"code": "memory", "cause": "it has 512 MiB of memory", "remedy": "Give it more."}


def check(
    folder: Path, reasons: dict[str, list[dict[str, str]]], *arguments: str
) -> tuple[int, dict[str, dict[str, Any]], str]:
    """Return exit status, the report's hosts, and the printed report of the checks on this machine."""
    (folder / "actions").mkdir()
    (folder / "actions" / "host_preflight.py").write_text(PREFLIGHT, encoding="utf-8")
    (folder / "hosts.yml").write_text(json.dumps(INVENTORY), encoding="utf-8")
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    done = subprocess.run(
        [program, "-i", str(folder / "hosts.yml"), str(ROOT / "playbooks" / "_check_hosts.yml"), *arguments],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "https_proxy": "http://user:s3cret@proxy.example.org:3128",
            "ANSIBLE_ACTION_PLUGINS": f"{folder}/actions:{ROOT}/plugins/action",
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "ANSIBLE_CALLBACKS_ENABLED": "inventory_files",
            "REASONS": json.dumps(reasons),
            # A host chooses these texts, and nothing may take them for a template.
            "MACHINE_ID": "{{ 7 * 7 }}",
            "_ANSIBLE_TEMPLAR_UNTRUSTED_TEMPLATE_BEHAVIOR": "error",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    plays = json.loads(done.stdout[done.stdout.index("{") :])["plays"]
    tasks = {task["task"]["name"]: task["hosts"] for each in plays for task in each["tasks"]}
    shown = "\n".join(tasks["Show the results"]["localhost"]["msg"])
    return done.returncode, tasks["Collect the results"]["localhost"], shown


def test_all_reasons_of_all_hosts_appear_at_once(tmp_path: Path) -> None:
    status, result, shown = check(tmp_path, {"w1": [MEMORY]})
    hosts = result["hosts"]
    assert status != 0
    assert {name: host["state"] for name, host in hosts.items()} == {
        "cp1": "works",
        "w1": "refused",
        "w2": "refused",
        "w3": "unreachable",
    }
    assert [each["code"] for each in hosts["w1"]["reasons"]] == ["memory", "node_address", "endpoint"]
    assert [each["code"] for each in hosts["w2"]["reasons"]] == ["package_source"]
    assert re.search(r"cp1  works +debian-13 x86_64, node address [0-9.]+ on \S+", shown)
    assert "it has 512 MiB of memory. Give it more. | no interface has the address 192.0.2.7" in shown
    assert "w1 cannot resolve endpoint.invalid" in shown
    assert re.search(r"w3   unreachable +Ansible cannot connect to it\.", shown)
    twins, proxies = result["warnings"]
    assert twins.startswith("cp1 and w2 have the same machine-id")
    assert "this controller names a proxy: http://***@proxy.example.org:3128 in its environment" in proxies


def test_hosts_outside_the_limit_are_not_called_unreachable(tmp_path: Path) -> None:
    status, result, shown = check(tmp_path, {}, "--limit=localhost,cp1")
    assert (status, list(result["hosts"])) == (0, ["cp1"]), shown


def test_a_host_that_is_lost_during_its_checks_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOST", "cp1")
    status, result, shown = check(tmp_path, {})
    assert status != 0 and result["hosts"]["cp1"]["state"] == "unreachable"
    assert re.search(r"cp1  unreachable +Its checks did not end", shown)
