"""Packages out of a Debian archive with its three suites, taken by apt itself."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.bundle.vendors import Signer, flipped, make_signer, sha256, stop_agent
from trainyard.bundle.build import deb
from trainyard.bundle.context import Context
from trainyard.bundle.lockfile import Artefact
from trainyard.core.errors import CommandError

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("apt-get", "dpkg-deb", "gpg"))), reason="apt, dpkg or gpg are not installed"
)

SUITES = ["trixie", "trixie-updates", "trixie-security"]


@pytest.fixture
def signer(monkeypatch) -> Iterator[Signer]:
    # Not in pytest's folders: the path of the agent's socket has to be short.
    with tempfile.TemporaryDirectory(prefix="ty-") as folder:
        made = make_signer(Path(folder, "archive"), "archive <archive@example.org>")
        Path(folder, "archive.gpg").write_bytes(made("--export"))
        monkeypatch.setattr(deb, "KEYRINGS", f"{folder}/*.gpg")
        yield made
        stop_agent(made)


def publish(archive: Path, suite: str, signer: Signer, *packages: tuple[str, str, str]) -> None:
    """A suite with packages of a name, a version and a dependency each."""
    folder = archive / "dists" / suite / "main/binary-amd64"
    folder.mkdir(parents=True)
    text = ""
    for name, version, depends in packages:
        control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: me\nDescription: it\n"
        control += f"Depends: {depends}\n" if depends else ""
        (archive / "root/DEBIAN").mkdir(parents=True, exist_ok=True)
        (archive / "root/DEBIAN/control").write_text(control)
        file = archive / f"{name}_{suite}.deb"
        subprocess.run(["dpkg-deb", "--build", archive / "root", file], check=True, capture_output=True, timeout=30)
        content = file.read_bytes()
        text += f"{control}Filename: {file.name}\nSize: {len(content)}\nSHA256: {sha256(content)}\n\n"
    (folder / "Packages").write_text(text)
    listed = f" {sha256(text.encode())} {len(text)} main/binary-amd64/Packages"
    release = f"Codename: {suite}\nArchitectures: amd64\nComponents: main\nSHA256:\n{listed}\n".encode()
    (archive / "dists" / suite / "InRelease").write_bytes(signer("--clearsign", stdin=release))


@pytest.fixture
def archive(tmp_path, signer) -> Path:
    """curl with a library, both with a security update that needs a package of the release."""
    debian = tmp_path / "debian"
    release = [("curl", "8.1-1", "libcurl"), ("libcurl", "8.1-1", ""), ("libnew", "1:2.0", ""), ("other", "1", "")]
    publish(debian, "trixie", signer, *release)
    publish(debian, "trixie-updates", signer, ("tzdata", "2026b", ""))
    publish(tmp_path / "debian-security", "trixie-security", signer, ("libcurl", "8.1-1+deb13u1", "libnew"))
    return debian


def take(archive: Path, before: dict[str, dict[str, str]] | None = None) -> dict[str, object]:
    context = Context(archive, archive.parent / "cache", f"copy:{archive}")
    context.previous = lambda name: {"resolved": before or {}}
    (archive.parent / "out").mkdir(exist_ok=True)
    recipe = {"suites": SUITES, "components": ["main"], "packages": ["curl", "tzdata"]}
    return deb.closure(Artefact("tool", "debian_packages", "trixie", recipe, {}, None), archive.parent / "out", context)


def test_the_newest_of_all_suites_comes_with_what_it_needs(archive) -> None:
    facts = take(archive)
    versions = {name: found["version"] for name, found in facts["resolved"].items()}
    assert versions == {"curl": "8.1-1", "libcurl": "8.1-1+deb13u1", "libnew": "1:2.0", "tzdata": "2026b"}
    names = {path.name for path in (archive.parent / "out").iterdir()}
    assert names == {
        "curl_8.1-1_amd64.deb",
        "libcurl_8.1-1+deb13u1_amd64.deb",
        "libnew_2.0_amd64.deb",
        "tzdata_2026b_amd64.deb",
    }


def test_newer_packages_than_the_last_time_are_told(archive) -> None:
    old = {"version": "8.1-1", "sha256": "0" * 64}
    assert take(archive, {"libcurl": old, "gone": old})["drift"] == ["libcurl 8.1-1 -> 8.1-1+deb13u1"]


def test_a_package_that_the_index_does_not_vouch_for_is_refused(archive) -> None:
    file = archive.parent / "debian-security/libcurl_trixie-security.deb"
    file.write_bytes(flipped(file.read_bytes()))
    with pytest.raises(CommandError, match="Hash Sum mismatch"):
        take(archive)


def test_a_suite_without_the_archives_signature_is_refused(archive, tmp_path, signer) -> None:
    stranger = make_signer(Path(f"{signer.home}.other"), "other <other@example.org>")
    path = tmp_path / "debian-security/dists/trixie-security/InRelease"
    path.write_bytes(stranger("--clearsign", stdin=path.read_bytes().split(b"\n\n")[1].split(b"-----")[0]))
    stop_agent(stranger)
    with pytest.raises(CommandError, match="NO_PUBKEY"):
        take(archive)
