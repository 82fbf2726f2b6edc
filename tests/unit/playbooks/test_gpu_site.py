"""site.yml with the roles of GPUs as they are: a driver at fault does not keep its node from being marked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.playbooks.gpu_fakes import FAKES
from tests.unit.playbooks.runs import ROOT, copy, play, put_fakes, stubs

# Several seconds for each run of the whole site.
pytestmark = pytest.mark.slow

GPUS = "all: {vars: {supply: mirror}, children: {gpu_nodes: {hosts: {w1: }}}}\n"

REFRESH_FAILS = """
from ansible.module_utils.basic import AnsibleModule
names = ("files", "stale", "commands", "timeout")
module = AnsibleModule({name: {"type": "raw"} for name in names}, supports_check_mode=True)
module.fail_json(msg="Job for nvidia-cdi-refresh.service failed.")
"""
"""What comes of describing the GPUs with a library that does not fit the loaded module: `nvidia-smi` ends with 18."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = stubs(copy(tmp_path_factory.mktemp("checkout")))
    (folder / "bundle.lock.yml").symlink_to(ROOT / "bundle.lock.yml")
    (folder / "workloads").symlink_to(ROOT / "workloads")
    (folder / "plugins" / "action" / "gpu_info.py").unlink()
    for role in ("nvidia_driver", "nvidia_runtime", "device_plugin"):
        shutil.rmtree(folder / "roles" / role)
        shutil.copytree(ROOT / "roles" / role, folder / "roles" / role)
    put_fakes(folder, {**FAKES, "host_files": REFRESH_FAILS})
    return folder


@pytest.mark.parametrize(("skew", "labels"), [(True, ["skew"]), (False, [])])
def test_a_skewed_host_reaches_its_label(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: bool, labels: list[str]
) -> None:
    facts = {"skew": True, "module_version": "580.95.05", "library_version": "580.126.09", "gpus": [], "healthy": False}
    monkeypatch.setenv("GPUS", json.dumps(facts if skew else {}))
    (tmp_path / "gpus.yml").write_text(GPUS, encoding="utf-8")
    status, touched, output = play(checkout, tmp_path, "site.yml", "--check", "-i", str(tmp_path / "gpus.yml"))
    given = [json.loads((tmp_path / "touched" / name).read_text(encoding="utf-8")) for name in touched]
    nodes = [each for part in given for each in part if isinstance(each, dict) and each.get("kind") == "Node"]
    assert [each["metadata"]["labels"]["trainyard.dev/gpu"] for each in nodes] == labels, output
    assert (status == 0) == skew, output


@pytest.mark.parametrize(
    ("variables", "facts", "said"),
    [
        (
            "supply=mirror",
            {"gpus": []},
            "The host w1 cannot be a node: - it is in gpu_nodes, but no installed driver shows a GPU.",
        ),
        ("supply=mirror", {"driver": "470.256.02"}, "The host w1 cannot be a node: - its driver is 470.256.02"),
        ("supply=mirror", {"switches": 4}, "w1 has 4 NVSwitches"),
        ("nvidia_driver_source=nvidia", {}, "w1 has no NVIDIA GPU"),
    ],
)
def test_a_host_on_which_no_driver_can_be_is_refused_before_anything_is_changed(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: str, facts: dict[str, Any], said: str
) -> None:
    monkeypatch.setenv("GPUS", json.dumps(facts))
    monkeypatch.setenv("HOST_REFUSES", "w1 has no NVIDIA GPU")
    monkeypatch.setenv("SWITCHES_REFUSED", "w1 has 4 NVSwitches" if "switches" in facts else "")
    (tmp_path / "gpus.yml").write_text(GPUS, encoding="utf-8")
    _, _, output = play(checkout, tmp_path, "site.yml", "-i", str(tmp_path / "gpus.yml"), "-e", variables)
    assert said in output, output
    changed = output.partition("PLAY [Prepare every host]")[2].partition("PLAY RECAP")[0]
    assert "[w2]" in changed and "[w1]" not in changed, output
