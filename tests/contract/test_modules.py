"""Tests that every custom module documents exactly its accepted arguments."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.plugins.loader import fragment_loader
from ansible.utils.plugin_docs import add_fragments
from checkout import ROOT, load

RUN = """import runpy, sys
from tests import one_name
one_name.install()
from ansible.module_utils.testing import patch_module_args
import json
with patch_module_args(json.load(sys.stdin)["ANSIBLE_MODULE_ARGS"]):
    runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""Runs a module as Ansible does, with its arguments on standard input."""

MODULES = sorted((ROOT / "library").glob("*.py"))


class _Seen(Exception):
    """Carries the arguments of AnsibleModule, and ends the module there."""


def _documentation(module: Any) -> dict[str, Any]:
    """Return the documentation of a module with that of its fragments, as `ansible-doc` composes it."""
    fragment_loader.add_directory(str(ROOT / "plugins" / "doc_fragments"))
    document: dict[str, Any] = yaml.safe_load(module.DOCUMENTATION)
    add_fragments(document, module.__file__, fragment_loader, is_module=True)
    return document


def _argument_spec(module: Any) -> dict[str, Any]:
    def record(*_: object, **arguments: object) -> None:
        raise _Seen(arguments)

    module.AnsibleModule = record
    with pytest.raises(_Seen) as seen:
        module.main()
    return seen.value.args[0]


def _normal(options: Mapping[str, Any], children: str) -> dict[str, Any]:
    """Return options with the implied values written out.

    :param children: key of the nested options.
    """
    normal = {}
    for name, option in options.items():
        normal[name] = {
            "type": option.get("type", "str"),
            "required": bool(option.get("required", False)),
            "default": option.get("default"),
            "choices": list(option.get("choices") or []),
            "elements": option.get("elements"),
            "options": _normal(option.get(children) or {}, children),
        }
    return normal


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_documentation(path: Path) -> None:
    module = load(path)
    documentation = _documentation(module)
    assert documentation["module"] == path.stem
    assert documentation["short_description"] and not documentation["short_description"].endswith(".")
    assert documentation["description"]
    assert "check_mode" in documentation.get("attributes", {}), "attributes.check_mode is not documented"
    yaml.safe_load(module.RETURN)
    examples = yaml.safe_load(module.EXAMPLES)
    assert examples and all(task["name"] for task in examples)
    used = [task[path.stem] or {} for task in examples if path.stem in task]
    assert used, "no example uses the module"
    for arguments in used:
        assert set(arguments) <= set(documentation.get("options") or {}), "an example uses an unknown option"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_documentation_agrees_with_the_argument_specification(path: Path) -> None:
    module = load(path)
    documented = _normal(_documentation(module).get("options") or {}, "suboptions")
    if not hasattr(module, "main"):
        # This documents an action plugin, which has the specification and works without a module.
        assert (ROOT / "plugins" / "action" / path.name).is_file()
        return
    arguments = _argument_spec(module)
    assert _normal(arguments["argument_spec"], "options") == documented
    attributes = _documentation(module).get("attributes", {})
    support = attributes.get("check_mode", {}).get("support")
    assert support in (("full", "partial") if arguments.get("supports_check_mode") else ("none",))


ASKING = {
    "cluster_findings": {"nodes": [], "control_plane": []},
    "kube_apply": {"definitions": []},
    "kube_prune": {"kinds": [{"api_version": "v1", "kind": "Secret", "selector": "a"}]},
    "kubelet_certificates": {"hosts": {}},
    "node_marks": {"nodes": [], "control_plane": []},
}
"""Modules that read a cluster in a check run, with their minimal arguments."""


@pytest.mark.parametrize("name", ASKING)
def test_a_check_run_without_a_cluster_says_that_nothing_was_planned(name: str, tmp_path: Path) -> None:
    """Otherwise a report would count it as drift."""
    arguments = {"kubeconfig": str(tmp_path / "none"), **ASKING[name], "_ansible_check_mode": True}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(ROOT / "library" / f"{name}.py")],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert result["changed"] is True and result["planned"] is False, result
    assert result["steps"][0].startswith("Not planned: There is no kubeconfig")
