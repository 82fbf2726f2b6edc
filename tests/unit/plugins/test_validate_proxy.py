"""The site's proxy in an inventory: the form of its URL, and a password that may only be in a vault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.plugins.test_validate_site import HOSTS, inventory, validate

PLAIN = "http://user:s3cret@proxy.example.org:3128"
REFUSED = "its password is not encrypted. Encrypt the whole URL"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A password of the vault, and a folder for an inventory."""
    (tmp_path / "password").write_text("password of the vault\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "password"))
    (tmp_path / "site").mkdir()
    return tmp_path / "site"


def vaulted(*arguments: str) -> str:
    program = str(Path(sys.executable).with_name("ansible-vault"))
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


def refusals(root: Path, folder: Path) -> str:
    done = validate(root, folder)
    said = done.stdout + done.stderr
    assert "s3cret" not in said
    return "\n".join(line for line in said.splitlines() if "base_proxy" in line)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (f"{{https: '{PLAIN}'}}", "base_proxy.https"),
        ("'{{ site_proxy }}'", "base_proxy.https"),
        ("{http: 'http://user:{{ site_password }}@proxy:3128'}", "base_proxy.http"),
    ],
)
def test_a_password_in_plain_text_is_refused(root: Path, tmp_path: Path, value: str, where: str) -> None:
    others = f"site_proxy: {{https: '{PLAIN}'}}\nsite_password: s3cret\n"
    said = refusals(root, inventory(tmp_path, HOSTS, f"{others}base_proxy: {value}\n"))
    assert f"variable {where}" in said and f"(hidden): {REFUSED}" in said.replace('"', "")


def test_a_password_in_a_vault_is_accepted(root: Path, vault: Path) -> None:
    inventory(vault, HOSTS, "base_proxy: {https: '{{ vault_proxy }}', http: '{{ file_proxy }}'}\n")
    (vault / "group_vars/all/vault.yml").write_text(vaulted("encrypt_string", PLAIN, "--name", "vault_proxy"))
    (vault / "group_vars/all/file.yml").write_text(f"file_proxy: '{PLAIN}'\n")
    vaulted("encrypt", str(vault / "group_vars/all/file.yml"))
    assert refusals(root, vault) == ""


def test_one_key_in_a_vault_does_not_hide_the_other(root: Path, vault: Path) -> None:
    key = vaulted("encrypt_string", PLAIN, "--name", "https").replace("\n", "\n  ")
    inventory(vault, HOSTS, f"base_proxy:\n  http: '{PLAIN}'\n  {key}\n")
    said = refusals(root, vault)
    assert "base_proxy.http" in said and "base_proxy.https" not in said


def test_forms_and_keys_are_refused_without_a_login(root: Path, tmp_path: Path) -> None:
    value = "{https: proxy.example.org:3128, http: 'socks5://user:s3cret@proxy', no: [a], none: [a:1]}"
    said = refusals(root, inventory(tmp_path, HOSTS, f"base_proxy: {value}\n"))
    assert "base_proxy.https" in said and '"proxy.example.org:3128": not a proxy. Write it with its scheme' in said
    assert '"(hidden)": not a proxy' in said and '"a:1": neither a host, a network nor a domain' in said
    assert "base_proxy.no" in said and "an unknown key" in said
