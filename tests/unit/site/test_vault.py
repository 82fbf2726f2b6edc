"""Encrypted values of an inventory, for the program `trainyard`."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.site.inventory import places

ENCRYPTED = f"$ANSIBLE_VAULT;1.1;AES256\n{'30' * 40}\n"


def site(folder: Path, name: str, text: str) -> list[str]:
    (folder / "group_vars" / "all").mkdir(parents=True)
    (folder / "hosts.yml").write_text("all: {hosts: {cp1: {}}, vars: {control_plane_kubeconfig: /k, site_dir: /s}}\n")
    (folder / "group_vars" / "all" / name).write_text(text)
    return [str(folder)]


def test_an_encrypted_file_without_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    with pytest.raises(TrainyardError, match="cannot be read") as caught:
        places(site(tmp_path, "secrets.yml", ENCRYPTED))
    assert caught.value.remedy == "Set ANSIBLE_VAULT_PASSWORD_FILE to a file with the vault's password."


def test_an_encrypted_value_that_nothing_reads(tmp_path: Path) -> None:
    value = "workloads_pull_password: !vault |\n" + "".join(f"  {line}\n" for line in ENCRYPTED.splitlines())
    assert places(site(tmp_path, "secrets.yml", value)).kubeconfig == "/k"
