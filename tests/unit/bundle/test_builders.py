"""The builders that need no network: packages, their repository, programs in C; and what the others refuse."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.bundle.vendors import vendor_server
from trainyard.bundle.artefact_store import sha256
from trainyard.bundle.build import deb, plain_files
from trainyard.bundle.build.kinds import BUILDERS
from trainyard.bundle.context import Context
from trainyard.bundle.lockfile import REQUIRED, VENDOR, Artefact
from trainyard.core.errors import TrainyardError

PROJECT = Path(__file__).parents[3]


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def artefact(kind: str, recipe: dict[str, Any], version: str = "1.2-1") -> Artefact:
    return Artefact("tool", kind, version, recipe, {}, None)


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture
def context(tmp_path) -> Context:
    """A project with a few files, and an artefact that is there."""
    (tmp_path / "project/unit").mkdir(parents=True)
    (tmp_path / "project/unit/tool.service").write_text("[Service]\n")
    (tmp_path / "project/scripts").mkdir()
    (tmp_path / "project/scripts/postinst").write_text("#!/bin/sh\n")
    (tmp_path / "project/scripts/conffiles").write_text("/etc/tool.conf\n")
    (tmp_path / "project/tool.conf").write_text("a = 1\n")
    (tmp_path / "project/tool.c").write_text("int main(void) { return 42; }\n")
    (tmp_path / "made").mkdir()
    (tmp_path / "made/tool").write_text("program")
    (tmp_path / "out").mkdir()
    return Context(tmp_path / "project", tmp_path / "cache", "", made={"program": tmp_path / "made"})


RECIPE = {
    "package": "tool",
    "files": {
        "/usr/bin/tool": "artefact:program/tool",
        "/usr/lib/systemd/system": "project:unit",
        "/etc/tool.conf": "project:tool.conf",
    },
    "maintainer_scripts": "project:scripts",
    "control": {"Depends": "libc6", "Description": "a tool"},
}


@needs("dpkg-deb")
def test_a_package_has_the_layout_and_the_fields_of_its_recipe(context, tmp_path) -> None:
    facts = deb.package(artefact("deb", RECIPE), tmp_path / "out", context)
    assert facts == {"deb": "tool_1.2-1_amd64.deb"}
    path = str(tmp_path / "out" / facts["deb"])
    listed = {line.split()[-1]: line.split()[:2] for line in output("dpkg-deb", "--contents", path).splitlines()}
    assert listed["./usr/bin/tool"] == ["-rwxr-xr-x", "root/root"]
    assert listed["./usr/lib/systemd/system/tool.service"] == ["-rw-r--r--", "root/root"]
    assert listed["./etc/tool.conf"] == ["-rw-r--r--", "root/root"]
    fields = output("dpkg-deb", "--field", path)
    for line in ("Package: tool", "Version: 1.2-1", "Architecture: amd64", "Depends: libc6", "Description: a tool"):
        assert line in fields
    with tarfile.open(fileobj=io.BytesIO(subprocess.check_output(["dpkg-deb", "--ctrl-tarfile", path]))) as control:
        assert {"./postinst", "./conffiles", "./control"} <= set(control.getnames())
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == [facts["deb"]]


@needs("dpkg-deb")
def test_equal_inputs_give_equal_packages(context, tmp_path) -> None:
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        facts = deb.package(artefact("deb", RECIPE), tmp_path / name, context)
        digests.add(sha256(tmp_path / name / facts["deb"]))
    assert len(digests) == 1


@needs("dpkg-deb", "aptly")
def test_a_repository_holds_the_packages_and_waits_for_its_signature(context, tmp_path) -> None:
    (tmp_path / "packages").mkdir()
    deb.package(artefact("deb", RECIPE), tmp_path / "packages", context)
    context.made["deb_tool"] = tmp_path / "packages"
    recipe = {"suite": "site", "component": "main", "packages": ["artefact:deb_tool/"]}
    assert deb.repository(artefact("apt_repository", recipe), tmp_path / "out", context) == {
        "suite": "site",
        "component": "main",
    }
    with tarfile.open(tmp_path / "out/repository.tar") as stream:
        names = stream.getnames()
    assert "./pool/main/t/tool/tool_1.2-1_amd64.deb" in names
    assert "./dists/site/main/binary-amd64/Packages.gz" in names
    assert not [name for name in names if name.endswith((".gpg", "InRelease"))]
    assert "Codename: site" in (tmp_path / "out/Release").read_text()


@needs("gcc")
def test_a_program_in_c_runs_alone(context, tmp_path) -> None:
    plain_files.c_program(
        artefact("c_program", {"source": "project:tool.c", "program": "tool"}), tmp_path / "out", context
    )
    program = tmp_path / "out/tool"
    assert subprocess.run([program], check=False, timeout=10).returncode == 42
    assert b"/lib64/ld-linux" not in program.read_bytes()


@needs("gcc")
def test_the_pause_program_tells_its_version_and_ends(tmp_path) -> None:
    """As `pause -v`, kubeadm's check before an upgrade runs it as another user than its image's."""
    recipe = {"source": "project:roles/bundle/files/c/pause.c", "program": "pause"}
    plain_files.c_program(artefact("c_program", recipe, "3.10.2"), tmp_path, Context(PROJECT, tmp_path, ""))
    # pytest's folders are for their owner only.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        program = shutil.copy(tmp_path / "pause", folder)
        user = 999 if os.getuid() == 0 else None
        shown = subprocess.run([program, "-v"], capture_output=True, check=True, timeout=10, cwd="/", user=user)
    assert shown.stdout == b"pause 3.10.2\n"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([tmp_path / "pause"], check=False, timeout=0.3)


def test_without_npm_the_registry_is_asked_itself(context, tmp_path, monkeypatch) -> None:
    npm(tmp_path, monkeypatch, b"labels")
    packed = (tmp_path / "package.tgz").read_bytes()
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(packed).digest()).decode()}"
    recipe = {"package": "@team/data", "integrity": integrity, "files": {"labels": "data/labels"}}
    monkeypatch.setenv("PATH", str(tmp_path))
    with vendor_server(tmp_path, monkeypatch) as vendor:
        vendor.files["/@team/data/-/data-1.2-1.tgz"] = packed
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"{vendor.url}/")
        plain_files.npm_files(artefact("npm_files", recipe), tmp_path / "out", context)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["labels"]


def test_without_npm_and_registry_the_remedy_is_named(context, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NPM_CONFIG_REGISTRY", raising=False)
    recipe = {"package": "data", "integrity": "sha512-x", "files": {}}
    with pytest.raises(TrainyardError, match="npm is not installed"):
        plain_files.npm_files(artefact("npm_files", recipe), tmp_path, context)


def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """An npm that packs a package with one file."""
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as stream:
        info = tarfile.TarInfo("package/data/labels")
        info.size = len(content)
        stream.addfile(info, io.BytesIO(content))
    (tmp_path / "bin").mkdir(exist_ok=True)
    script = f'#!/bin/sh\ncp {tmp_path}/package.tgz "$PWD/p.tgz"\necho \'[{{"filename": "p.tgz"}}]\'\n'
    (tmp_path / "bin/npm").write_text(script)
    (tmp_path / "bin/npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")


def test_an_npm_package_with_another_hash_is_refused(context, tmp_path, monkeypatch) -> None:
    npm(tmp_path, monkeypatch, b"labels")
    recipe = {"package": "data", "integrity": "sha512-AAAA", "files": {"labels": "data/labels"}}
    with pytest.raises(TrainyardError, match=r"the integrity sha512-(\S+), but the lock has sha512-AAAA") as failure:
        plain_files.npm_files(artefact("npm_files", recipe), tmp_path / "out", context)
    recipe["integrity"] = failure.value.message.split("integrity ")[1].split(",")[0]
    plain_files.npm_files(artefact("npm_files", recipe), tmp_path / "out", context)
    assert (tmp_path / "out/labels").read_bytes() == b"labels"


def test_every_kind_has_a_builder() -> None:
    assert set(BUILDERS) == {kind for kind in REQUIRED if not kind.startswith(VENDOR)}
