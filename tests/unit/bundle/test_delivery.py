"""Artefacts on their way from a builder to a controller: real archives, whole or not at all."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard.bundle import delivery
from trainyard.bundle.artefact_store import Store
from trainyard.core.errors import TrainyardError

KEY, OTHER = "a" * 64, "b" * 64
CONTENT = bytes(range(256)) * 5000


def build(out: Path) -> dict[str, str]:
    (out / "oci/blobs").mkdir(parents=True)
    (out / "oci/blobs/layer").write_bytes(CONTENT)
    (out / "oci/index.json").write_text("{}")
    (out / "program").write_text("#!/bin/sh\n")
    (out / "program").chmod(0o755)
    return {"layout": "oci", "digest": "sha256:1"}


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A folder with the archive of an artefact that a builder has made."""
    folder = tmp_path / "archives"
    folder.mkdir()
    builder = Store(tmp_path / "builder")
    builder.add("image", KEY, build)
    delivery.pack(builder, "image", KEY, folder)
    return folder


def take(archives: Path, key: str = KEY) -> Store:
    store = Store(archives.parent / "controller")
    store.add("image", key, lambda out: delivery.unpack(archives, "image", key, out))
    return store


def nothing_is_there(archives: Path) -> bool:
    cache = archives.parent / "controller"
    return [path for path in cache.rglob("*") if path.is_file()] == [] and not list(cache.glob("*/*"))


def test_what_arrives_is_what_was_made(archives: Path) -> None:
    there, here = Store(archives.parent / "builder"), take(archives)
    assert here.read("image", KEY) == there.read("image", KEY) is not None
    assert os.access(here.path("image", KEY) / "program", os.X_OK)
    assert not os.access(here.path("image", KEY) / "oci/index.json", os.X_OK)


def test_an_archive_is_for_the_owner_of_its_folder(archives: Path) -> None:
    archive = archives / "image.tar"
    assert archive.stat().st_mode & 0o777 == 0o600
    assert archive.stat().st_uid == archives.stat().st_uid
    if os.geteuid() == 0:
        os.chown(archives, 65534, 65534)
        delivery.pack(Store(archives.parent / "builder"), "image", KEY, archives)
        assert (archive.stat().st_uid, archive.stat().st_gid) == (65534, 65534)


def flip(content: bytes) -> bytes:
    place = content.index(CONTENT[:512]) + 700
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        lambda content: content[: len(content) // 2],
        lambda content: content[:700],
        lambda content: b"",
        lambda content: b"x" * 4000,
    ],
    ids=["one bit", "half", "half a manifest", "empty", "no archive"],
)
def test_a_damaged_archive_leaves_nothing(archives: Path, damage: Callable[[bytes], bytes]) -> None:
    archive = archives / "image.tar"
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(TrainyardError, match=r"image\.tar is damaged: .*Run again"):
        take(archives)
    assert nothing_is_there(archives)


def repack(archives: Path, change: Callable[[tarfile.TarInfo], tarfile.TarInfo | None], more: str = "") -> None:
    archive = archives / "image.tar"
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as old, tarfile.open(archive, "w") as new:
        for member in old.getmembers():
            content = old.extractfile(member)
            if changed := change(member):
                new.addfile(changed, content if changed.isreg() else None)
        if more:
            new.addfile(tarfile.TarInfo(more), io.BytesIO())


def without(name: str) -> Callable[[tarfile.TarInfo], tarfile.TarInfo | None]:
    return lambda member: None if member.name == name else member


def as_link(member: tarfile.TarInfo) -> tarfile.TarInfo:
    if member.name == "program":
        member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0
    return member


@pytest.mark.parametrize(
    ("change", "more"),
    [
        (without("oci/index.json"), ""),
        (without("artefact.json"), ""),
        (as_link, ""),
        (lambda member: member, "more"),
        (lambda member: member, "../../outside"),
    ],
    ids=["a file less", "no manifest", "a link", "a file more", "a file elsewhere"],
)
def test_another_content_than_the_manifest_says_is_refused(
    archives: Path, change: Callable[[tarfile.TarInfo], tarfile.TarInfo | None], more: str
) -> None:
    repack(archives, change, more)
    with pytest.raises(TrainyardError, match="is damaged"):
        take(archives)
    assert nothing_is_there(archives)
    assert not (archives.parent / "outside").exists()


def test_a_manifest_cannot_name_a_place_elsewhere(tmp_path: Path) -> None:
    store = Store(tmp_path / "builder")
    store.add("image", KEY, lambda out: (out / "safe").write_text("x") and {})
    manifest = store.path("image", KEY) / "artefact.json"
    manifest.write_text(manifest.read_text().replace('"safe"', '"../evil"'))
    (store.path("image", KEY).parent / "evil").write_text("x")
    (tmp_path / "archives").mkdir()
    delivery.pack(store, "image", KEY, tmp_path / "archives")
    with pytest.raises(TrainyardError, match=r"\.\./evil is not a file"):
        take(tmp_path / "archives")
    assert not list((tmp_path / "controller").rglob("evil"))


def test_another_artefact_is_refused_with_what_to_do(archives: Path) -> None:
    with pytest.raises(TrainyardError, match=r"made image a{16}, but image b{16} is needed.*bundle_artifact_source"):
        take(archives, OTHER)
    assert nothing_is_there(archives)


def test_what_was_not_delivered_is_named(archives: Path) -> None:
    (archives / "image.tar").unlink()
    with pytest.raises(TrainyardError, match=r"image\.tar: No such file"):
        take(archives)


def test_links_are_not_packed(tmp_path: Path) -> None:
    store = Store(tmp_path / "builder")
    store.add("image", KEY, lambda out: (out / "link").symlink_to("/etc/passwd") or {})
    with pytest.raises(TrainyardError, match="it has the link link"):
        delivery.pack(store, "image", KEY, tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="not there: /dev/full")
def test_no_room_on_the_builder(archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open
    monkeypatch.setattr(delivery.os, "open", lambda path, *_: opened("/dev/full", os.O_WRONLY))
    monkeypatch.setattr(delivery.os, "fchown", lambda *_: None)
    with pytest.raises(TrainyardError, match=r"cannot be written: No space left on device.*Free space in"):
        delivery.pack(Store(archives.parent / "builder"), "image", KEY, archives)
    assert list(archives.iterdir()) == []
