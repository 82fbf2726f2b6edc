"""`kube_apply` writes the record, and no check run does."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from library import kube_apply
from tests.unit.apiserver import ApiServer
from trainyard.kube.api import Api
from trainyard.unmanaged.rendered import path_of, read

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "console", "namespace": "web"},
    "spec": {"type": "NodePort", "ports": [{"port": 443, "nodePort": 30443}]},
}


def run(monkeypatch: pytest.MonkeyPatch, server: ApiServer, kubeconfig: Path, *, check: bool = False) -> Any:
    monkeypatch.setattr(kube_apply, "connect", lambda _: Api(server))
    monkeypatch.setattr("sys.stdout", out := io.StringIO())
    arguments = {"kubeconfig": str(kubeconfig), "definitions": [SERVICE], "record": "dashboard"}
    with (
        patch_module_args({**arguments, "_ansible_check_mode": check, "_ansible_diff": True}),
        pytest.raises(SystemExit),
    ):
        kube_apply.main()
    return json.loads(out.getvalue())


def test_the_record_is_a_step_of_the_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server, path = ApiServer(), tmp_path / "kubeconfig"
    planned = run(monkeypatch, server, path, check=True)
    assert planned["diff"]["before"]["record of what dashboard renders"] == "missing"
    assert not Path(path_of(str(path))).exists()
    done = run(monkeypatch, server, path)
    assert done["changed"] and done["steps"][0].startswith("Write the record of what dashboard renders")
    assert read(str(path)).objects == {"Service web/console": {"doors": ["NodePort 30443"]}}
    assert run(monkeypatch, server, path, check=True)["changed"] is False
