"""Signing keys by address and fingerprint, with keys that gpg itself makes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.bundle.vendors import Vendor
from trainyard.bundle.vendor import vendor_apt
from trainyard.core.errors import TrainyardError


def serve(vendor: Vendor, file: Path) -> str:
    """Put a file on the server and return its address."""
    vendor.files["/key"] = file.read_bytes()
    return f"{vendor.url}/key"


def make_key(folder: Path, name: str, *, armored: bool = True) -> tuple[Path, str]:
    """A key file and its fingerprint."""
    home = folder / f"home-{name}"
    home.mkdir(mode=0o700)
    gpg = ["gpg", f"--homedir={home}", "--batch", "--quiet"]
    subprocess.run(
        [*gpg, "--passphrase=", "--quick-generate-key", name, "ed25519", "sign", "never"], check=True, timeout=60
    )
    path = folder / f"{name}.key"
    form = ["--armor"] if armored else []
    path.write_bytes(subprocess.run([*gpg, *form, "--export"], check=True, capture_output=True, timeout=60).stdout)
    subprocess.run(["gpgconf", f"--homedir={home}", "--kill", "all"], check=False, timeout=60)
    (fingerprint,) = vendor_apt.fingerprints(path.read_bytes())
    return path, fingerprint


@pytest.mark.parametrize("armored", [True, False])
def test_a_key_comes_back_armored(vendor, tmp_path: Path, armored: bool) -> None:
    path, fingerprint = make_key(tmp_path, "vendor", armored=armored)
    key = vendor_apt.fetch_key(serve(vendor, path), fingerprint.lower())
    assert key.startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----\n")
    assert vendor_apt.fingerprints(key.encode()) == [fingerprint]


def test_another_key_is_refused(vendor, tmp_path: Path) -> None:
    path, fingerprint = make_key(tmp_path, "vendor")
    with pytest.raises(TrainyardError, match=f"has the key {fingerprint} instead of {'A' * 40}"):
        vendor_apt.fetch_key(serve(vendor, path), "A" * 40)


def test_a_second_key_in_the_file_is_refused(vendor, tmp_path: Path) -> None:
    path, fingerprint = make_key(tmp_path, "vendor")
    other, _ = make_key(tmp_path, "stranger")
    path.write_bytes(path.read_bytes() + other.read_bytes())
    with pytest.raises(TrainyardError, match="instead of"):
        vendor_apt.fetch_key(serve(vendor, path), fingerprint)


def test_what_is_no_key_is_refused(vendor, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_text("<html>Not found</html>")
    with pytest.raises(TrainyardError, match="has the key none instead of"):
        vendor_apt.fetch_key(serve(vendor, page), "A" * 40)


def run_module(root: Path, url: str, fingerprint: str, path: Path, *flags: str) -> dict[str, object]:
    program = Path(sys.executable).with_name("ansible")
    arguments = json.dumps({"url": url, "fingerprint": fingerprint, "path": str(path)})
    found = subprocess.run(
        [str(program), "localhost", "-m", "signing_key", "-a", arguments, "--one-line", *flags],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return json.loads(found.stdout.partition("=> ")[2])


@pytest.mark.slow
def test_the_module_keeps_the_key_and_uses_it_on_when_nobody_answers(vendor, root: Path, tmp_path: Path) -> None:
    path, fingerprint = make_key(tmp_path, "vendor")
    kept = tmp_path / "keys" / "vendor.asc"
    url = serve(vendor, path)
    planned = run_module(root, url, fingerprint, kept, "--check")
    assert planned["changed"] and not kept.exists()
    assert run_module(root, url, fingerprint, kept)["changed"]
    assert vendor_apt.fingerprints(kept.read_bytes()) == [fingerprint]
    vendor.files.clear()
    again = run_module(root, url, fingerprint, kept)
    assert not again["changed"] and again["key"] == kept.read_text()
    kept.unlink()
    assert "cannot be fetched" in str(run_module(root, url, fingerprint, kept)["msg"])
