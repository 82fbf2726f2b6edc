"""A site from vendors: fetched artefacts take the place of built ones, and what is made from them does not notice."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.unit.bundle import test_apt_fetch as apt
from tests.unit.bundle import test_registry_fetch as registry
from tests.unit.bundle.vendors import Signer, Vendor, flipped, make_signer, stop_agent
from trainyard.bundle import lockfile
from trainyard.bundle.artefact_store import Store
from trainyard.bundle.assemble import Assembly
from trainyard.bundle.context import Context
from trainyard.core.errors import TrainyardError
from trainyard.core.progress import Progress

pytestmark = pytest.mark.skipif(
    not all(shutil.which(program) for program in ("aptly", "dpkg-deb", "skopeo")),
    reason="not installed: aptly, dpkg-deb or skopeo",
)


@pytest.fixture(scope="module")
def signer() -> Iterator[Signer]:
    with tempfile.TemporaryDirectory(prefix="ty-") as folder:
        made = make_signer(Path(folder, "vendor"), "vendor <vendor@example.org>")
        yield made
        stop_agent(made)


@pytest.fixture
def vendor(vendor) -> Vendor:
    vendor.token = "secret"
    return vendor


def make_deb(folder: Path) -> bytes:
    (folder / "deb/DEBIAN").mkdir(parents=True)
    fields = "Package: tool\nVersion: 1.2-1\nArchitecture: amd64\nMaintainer: a <a@example.org>\nDescription: a\n"
    (folder / "deb/DEBIAN/control").write_text(fields)
    argv = ["dpkg-deb", "--root-owner-group", "--build", str(folder / "deb"), str(folder / "tool.deb")]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return (folder / "tool.deb").read_bytes()


def write_lock(folder: Path, vendor: Vendor, signer: Signer, digest: str) -> dict[str, lockfile.Artefact]:
    """A lock whose package and image could be made from a program that is not there, or fetched."""
    program = {"kind": "c_program", "version": "1", "source": "project:absent.c", "program": "tool"}
    origin = {
        "apt": f"{vendor.url}/debian",
        "suite": "trixie",
        "component": "stable",
        "key": f"{vendor.url}/debian/key",
        "signed_by": signer.fingerprint,
    }
    package = {
        "kind": "deb",
        "version": "1.2-1",
        "package": "tool",
        "files": {"/usr/bin/tool": "artefact:program/tool"},
    }
    image = {"kind": "image", "version": "v1", "reference": "team/tool:{version}", "containerfile": "project:absent"}
    site = {
        "kind": "apt_repository",
        "version": "1",
        "suite": "site",
        "component": "main",
        "packages": ["artefact:deb/"],
    }
    entries = {
        "program": program,
        "deb": {**package, "upstream": origin},
        "site": site,
        "image": {**image, "upstream": {"image": f"{vendor.address}/team/tool:v1@{digest}"}},
    }
    (folder / "lock.yml").write_text(yaml.safe_dump({"schema": 1, "artefacts": entries}))
    return lockfile.load(folder / "lock.yml")


def assemble(folder: Path, artefacts: dict[str, lockfile.Artefact], source: str) -> Assembly:
    cache = folder / "cache"
    return Assembly(artefacts, ["site", "image"], Store(cache), Context(folder, cache, ""), source)


@pytest.mark.parametrize("source", ["upstream", "auto"])
def test_a_site_from_vendors(vendor, signer, tmp_path, source: str) -> None:
    apt.publish(vendor, signer, "dists", deb=make_deb(tmp_path))
    digests = registry.publish(vendor)
    artefacts = write_lock(tmp_path, vendor, signer, digests["index"])
    if source == "auto":
        # Without a way back to source the choice would fail on the absent file.
        (tmp_path / "absent.c").write_text("")
        (tmp_path / "absent").mkdir()
    assembly = assemble(tmp_path, artefacts, source)
    assert set(assembly.missing) == {"deb", "site", "image"}
    assembly.build_missing(Progress(str(tmp_path / "progress")))
    result, made = assembly.result(), assembly.manifests
    assert {name: found["origin"] for name, found in made.items()} == {
        "deb": "upstream",
        "site": "source",
        "image": "upstream",
    }
    assert made["deb"]["deb"] == "tool_1.2-1_amd64.deb"
    assert (result["image"]["reference"], result["image"]["digest"]) == ("team/tool:v1", digests["manifest"])
    assert Path(result["image"]["layout"], "index.json").exists()
    with tarfile.open(Path(result["site"]["path"], "repository.tar")) as stream:
        assert "./pool/main/t/tool/tool_1.2-1_amd64.deb" in stream.getnames()
    assert "deb 1.2-1 from upstream: started" in (tmp_path / "progress").read_text()
    vendor.files.clear()
    assert assemble(tmp_path, artefacts, source).missing == [], "a second run needs no vendor"


def test_a_flipped_bit_makes_the_whole_fail_and_leaves_the_rest(vendor, signer, tmp_path) -> None:
    apt.publish(vendor, signer, "dists", deb=make_deb(tmp_path))
    digests = registry.publish(vendor)
    [place] = [path for path in vendor.files if path.endswith(digests["layer"])]
    whole = vendor.files[place]
    vendor.files[place] = flipped(whole)
    artefacts = write_lock(tmp_path, vendor, signer, digests["index"])
    with pytest.raises(TrainyardError, match=r"The artefact image cannot be made: .*did not match"):
        assemble(tmp_path, artefacts, "upstream").build_missing(Progress(None))
    vendor.files[place] = whole
    again = assemble(tmp_path, artefacts, "upstream")
    assert "deb" not in again.missing
    again.build_missing(Progress(None))
    assert assemble(tmp_path, artefacts, "upstream").missing == []
