"""The image itself: the same bytes everywhere, and a layout that the programs which use it accept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.unit.registries import PROGRAMS, running
from trainyard.bundle import registry
from trainyard.core.errors import TrainyardError
from trainyard.oci import code_folder, layout

DIGEST = "sha256:bb27e5cc27df4246b1dd0fe6807ae0f189cb56dac77d00dcebd87b53617673a9"
"""Of the image of `code` with `LONG` and a link: what any Python on any machine has to make of it."""
LONG = f"mine/{'l' * 90}/ä-{'x' * 90}.py"


def pack(code: Path) -> layout.Layout:
    return layout.pack(code, code_folder.read(code))


def layer(image: layout.Layout, place: Path) -> list[tarfile.TarInfo]:
    """What the layer holds, found by the way that a container engine goes: index, manifest, layer."""
    image.write(place)
    manifest = json.loads(image.files[f"blobs/{image.digest.replace(':', '/')}"])
    digest = manifest["layers"][0]["digest"].replace(":", "/")
    with tarfile.open(place / "blobs" / digest, "r:") as stream:
        return stream.getmembers()


def test_the_digest_is_the_same_on_every_machine(code) -> None:
    (code / LONG).parent.mkdir()
    (code / LONG).write_text("x = 1\n")
    (code / "again.py").symlink_to("worker.py")
    assert pack(code).digest == DIGEST


def test_owner_time_and_order_do_not_count(code, tmp_path) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(code, other)
    for path in sorted(other.rglob("*"), reverse=True):
        os.utime(path, (1, 2))
        path.chmod(0o700 if path.is_dir() or path.stat().st_mode & 0o100 else 0o640)
    if os.geteuid() == 0:
        os.chown(other / "worker.py", 1234, 1234)
    assert pack(other) == pack(code)


@pytest.mark.parametrize("change", ["content", "name", "mode", "link"])
def test_whatever_a_pod_would_notice_counts(code, change: str) -> None:
    (code / "again.py").symlink_to("worker.py")
    before = pack(code).digest
    if change == "content":
        (code / "worker.py").write_text("print('other')\n")
    elif change == "name":
        (code / "worker.py").rename(code / "works.py")
    elif change == "mode":
        (code / "worker.py").chmod(0o755)
    else:
        (code / "again.py").unlink()
        (code / "again.py").symlink_to("run.sh")
    assert pack(code).digest != before


def test_files_belong_to_root_and_are_from_1970(code, tmp_path) -> None:
    (code / "run.sh").chmod(0o700)
    (code / "worker.py").chmod(0o600)
    members = layer(pack(code), tmp_path / "oci")
    assert {(member.uid, member.gid, member.uname, member.gname, member.mtime) for member in members} == {
        (0, 0, "", "", 0)
    }
    modes = {member.name: member.mode for member in members}
    assert (modes["mine"], modes["run.sh"], modes["worker.py"]) == (0o755, 0o755, 0o644)


def test_every_blob_has_the_digest_and_size_that_is_said_of_it(code, tmp_path) -> None:
    image = pack(code)
    for name, content in image.files.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
    (described,) = json.loads(image.files["index.json"])["manifests"]
    assert described["digest"] == image.digest
    manifest = json.loads(image.files[f"blobs/{image.digest.replace(':', '/')}"])
    for blob in (manifest["config"], *manifest["layers"]):
        assert len(image.files[f"blobs/{blob['digest'].replace(':', '/')}"]) == blob["size"]


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="not installed: skopeo")
@pytest.mark.parametrize("target", ["oci-archive:{}/a.tar:localhost/trainyard/code@{}", "dir:{}/{}"])
def test_skopeo_takes_it_as_it_is(code, tmp_path, target: str) -> None:
    """As `containerd_images` packs it for a node, and with every digest checked."""
    image = pack(code)
    image.write(tmp_path / "oci")
    there = target.format(tmp_path, image.digest if "@" in target else "copy")
    argv = ["skopeo", "--insecure-policy", "copy", "--quiet", "--preserve-digests", f"oci:{tmp_path}/oci", there]
    subprocess.run(argv, check=True, timeout=60)
    raw = subprocess.run(["skopeo", "inspect", "--raw", there], check=True, timeout=60, capture_output=True).stdout
    assert f"sha256:{hashlib.sha256(raw).hexdigest()}" == image.digest


@PROGRAMS
def test_a_registry_keeps_it_under_its_digest(code, tmp_path) -> None:
    image = pack(code)
    image.write(tmp_path / "oci")
    pushed = registry.Image("trainyard/code:abc", tmp_path / "oci", image.digest)
    with running(tmp_path) as (url, authority), registry.registry(url, registry.Access(ca_file=authority)) as there:
        there.open()
        there.push(pushed)
        assert there.digest(pushed.reference) == image.digest


def test_a_layout_is_there_whole_or_not_at_all(code, tmp_path) -> None:
    image, place = pack(code), tmp_path / "oci"
    assert not image.is_at(place)
    image.write(place)
    assert image.is_at(place)
    assert layout.files_in(place) == 5
    (place / "index.json").write_text("{}")
    assert not image.is_at(place)
    assert layout.files_in(place) == 0


def test_a_file_that_goes_while_it_is_packed_is_named(code) -> None:
    entries = code_folder.read(code)
    (code / "worker.py").unlink()
    with pytest.raises(TrainyardError, match=r"worker\.py cannot be read"):
        layout.pack(code, entries)
