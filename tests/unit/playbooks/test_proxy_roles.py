"""What the roles write and pass on with `base_proxy`, and that nothing changes without it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.unit.playbooks.runs import ROOT, copy, play

# Several seconds for each start of Ansible.
pytestmark = pytest.mark.slow

RECORD = """
import json, os, uuid
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
spec = {{name: {{"type": "raw"}} for name in {options}}}
spec["proxy"] = {{"type": "dict", "no_log": True}}
spec["files"] = {{"type": "list", "no_log": True}}
module = AnsibleModule(spec, supports_check_mode=True)
given = {{**module.params, "module": {name!r}, "case": os.environ["CASE"]}}
Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps(given))
module.exit_json(changed=False, steps=[], key="key", changed_paths=[], artefacts={{}}, missing=[])
"""
"""Replaces a module that changes a host, or fetches: writes its options to a file."""
FAKES = {
    "apt_packages": ("packages", "hold", "may_remove", "frozen_by", "timeout", "busy_timeout"),
    "bundle_index": (),
    "bundle": (
        *("lock", "project", "cache_dir", "source", "debian_mirror", "go_min", "artefacts", "also", "keep_days"),
        *("delivered", "progress_file"),
    ),
    "host_files": ("files", "stale", "trees", "replace", "commands", "set_aside", "apt_sources_once", "timeout"),
    "kernel_settings": ("features", "sysctls", "swap_off"),
    "signing_key": ("url", "fingerprint", "path"),
    "systemd_unit": ("name", "newer_than", "restart", "ready", "ready_timeout"),
}
HOST = ("clock_settable", "clock_kept", "hosts_template", "network_manager", "modules_directory")
LOGIN = "http://user:s3cret@proxy.example.org:3128"
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "open": {"base_proxy": {"https": "http://proxy.example.org:3128", "none": [".corp"]}},
    "login": {"base_proxy": {"http": LOGIN, "https": LOGIN}},
}
SUBSET = ["!all", "!min", "distribution", "service_mgr"]
FACTS = {"name": "Gather facts", "ansible.builtin.setup": {"gather_subset": SUBSET}}
KEY = {
    "name": "a",
    "uris": ["https://a.example"],
    "suites": ["/"],
    "key_url": "https://a.example/k",
    "fingerprint": "F",
}
VARIABLES = {
    "ansible_connection": "local", "ansible_become": False,
    "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    "supply": "vendors", "site_dir": "/nonexistent", "host_reasons": [], "base_apt_sources": [KEY],
    "__base_preflight": {"host": {**dict.fromkeys(HOST, False), "certificate_store": True}},
    "control_plane_kubeconfig": "/nonexistent", "bundle_cache_dir": "/nonexistent",
}  # fmt: skip


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By case and module what the fakes were given."""
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "checkout").mkdir()
    checkout = copy(folder / "checkout")
    (checkout / "roles").symlink_to(ROOT / "roles")
    for name, options in FAKES.items():
        (checkout / "library" / f"{name}.py").write_text(RECORD.format(name=name, options=options), encoding="utf-8")
    environment = {"CASE": "{{ inventory_hostname }}"}
    plays = [
        {"hosts": "cases", "environment": environment, "pre_tasks": [FACTS], "roles": ["base", "containerd", "docker"]},
        {"hosts": "localhost", "environment": environment, "gather_facts": False, "roles": ["bundle"]},
    ]
    (checkout / "playbooks" / "cases.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    here = {"base_proxy": {"https": LOGIN}}
    inventory = {"all": {"vars": VARIABLES, "hosts": {"localhost": here}, "children": {"cases": {"hosts": CASES}}}}
    (folder / "cases.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    arguments = ("-i", str(folder / "cases.yml"), "--limit=cases,localhost", "-vvv", "--diff")
    status, touched, output = play(checkout, folder, "playbooks/cases.yml", *arguments)
    assert status == 0, output
    assert "s3cret" not in output
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name in touched:
        each = json.loads((folder / "touched" / name).read_text(encoding="utf-8"))
        found.setdefault(each["case"], {}).setdefault(each["module"], []).append(each)
    return found


def files(given: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The files of the roles that are about a proxy, by path."""
    all_files = {file["dest"]: file for call in given["host_files"] for file in call["files"]}
    return {path: file for path, file in all_files.items() if "proxy" in path}


def test_without_a_proxy_nothing_is_written(given: Any) -> None:
    assert files(given["plain"]) == {}
    stale = {path for call in given["plain"]["host_files"] for path in call["stale"] if "proxy" in path}
    assert stale == files(given["login"]).keys()


@pytest.mark.parametrize(("case", "mode"), [("open", "0644"), ("login", "0600")])
def test_files_of_a_host_behind_a_proxy(given: Any, case: str, mode: str) -> None:
    found = files(given[case])
    apt = found.pop("/etc/apt/apt.conf.d/zz-trainyard-proxy")
    assert (
        apt["mode"] == mode
        and f'Acquire::https::Proxy "{CASES[case]["base_proxy"]["https"]}";' in apt["secret_content"]
    )
    for daemon in ("containerd", "docker"):
        text = found.pop(f"/etc/trainyard/{daemon}/proxy.env")
        drop_in = found.pop(f"/etc/systemd/system/{daemon}.service.d/trainyard-proxy.conf")
        assert f"\nEnvironmentFile=-/etc/trainyard/{daemon}/proxy.env\n" in drop_in["content"]
        lines = dict(line.split("=", 1) for line in text["secret_content"].splitlines()[1:])
        assert text["mode"] == "0600" and lines["HTTPS_PROXY"] == f'"{CASES[case]["base_proxy"]["https"]}"'
        assert {"plain", "login", "10.96.0.0/16", ".cluster.local"} <= {*lines["NO_PROXY"].strip('"').split(",")}
    assert found == {}


@pytest.mark.parametrize("daemon", ["containerd", "docker"])
def test_a_daemon_restarts_for_its_proxy_and_its_removal(given: Any, daemon: str) -> None:
    (unit,) = [each for each in given["plain"]["systemd_unit"] if each["name"] == f"{daemon}.service"]
    assert {f"/etc/trainyard/{daemon}", f"/etc/trainyard/{daemon}/proxy.env"} <= {*unit["newer_than"]}
    assert unit["restart"] is False


def test_downloads_of_the_controller_have_its_own_proxy(given: Any) -> None:
    for case in CASES:
        assert [key["proxy"]["HTTPS_PROXY"] for key in given[case]["signing_key"]] == [LOGIN]
    fetching = [*given["localhost"]["bundle"], *given["localhost"]["apt_packages"]]
    assert [each["proxy"]["HTTPS_PROXY"] for each in fetching] == [LOGIN, LOGIN]
    # apt on a host reads the file.
    assert [each for case in CASES for each in given[case]["apt_packages"] if each["proxy"]] == []
