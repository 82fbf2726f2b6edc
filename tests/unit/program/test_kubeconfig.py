"""`trainyard kubeconfig`: a file for kubectl with the rights of a user, and nothing of the administrator's."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.program.test_logins import cluster
from trainyard.cli import kubeconfig
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.site.inventory import Places

ADMIN = """
apiVersion: v1
clusters:
- cluster: {server: "https://10.1.0.10:6443", certificate-authority-data: b3VycyEK}
  name: kubernetes
users:
- name: kubernetes-admin
  user: {client-key-data: YWRtaW4=}
"""


def test_a_kubeconfig_has_the_users_token_and_nothing_of_the_administrators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "admin.conf").write_text(ADMIN, encoding="utf-8")
    monkeypatch.setattr(kubeconfig, "places", lambda _: Places(str(tmp_path / "admin.conf"), "logs", str(tmp_path)))
    monkeypatch.setattr(kubeconfig, "connect", lambda _: Api(cluster()))
    done = CliRunner().invoke(kubeconfig.command, ["alice", "--hours", "2"], obj=())
    assert done.exit_code == 0, done.output
    file = tmp_path / "kubeconfig-alice"
    assert f"file   {file}\nlevel  operator" in done.output and "s3cret" not in done.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["users"] == [{"name": "alice", "user": {"token": "s3cret"}}]
    assert found["clusters"][0]["cluster"] == {
        "server": "https://10.1.0.10:6443",
        "certificate-authority-data": "b3VycyEK",
    }
    assert "YWRtaW4" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["", "[", "clusters: 1", "clusters: [{cluster: {server: 1}}]", ADMIN.replace("b3", ": ")]
)
def test_a_kubeconfig_of_the_site_that_cannot_be_read_creates_no_login(tmp_path: Path, text: str) -> None:
    (tmp_path / "admin.conf").write_text(text, encoding="utf-8")
    with pytest.raises(TrainyardError, match="cannot be read, or lacks the server"):
        kubeconfig.cluster_of(str(tmp_path / "admin.conf"))
