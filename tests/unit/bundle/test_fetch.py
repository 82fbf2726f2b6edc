"""Downloads: resumed, bounded, believed by their hash only; files, archives, and the pins of all of them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.module_utils.trainyard.bundle import lock, pin
from ansible.module_utils.trainyard.bundle.origin import Download
from ansible.module_utils.trainyard.bundle.vendor import http as fetch
from ansible.module_utils.trainyard.bundle.vendor.upstream import Upstream, download
from ansible.module_utils.trainyard.core.errors import TrainyardError

from tests.unit.bundle.vendors import Vendor, flipped, sha256, vendor_server

CONTENT = bytes(range(256)) * 64


@pytest.fixture
def vendor(tmp_path, monkeypatch) -> Iterator[Vendor]:
    with vendor_server(tmp_path, monkeypatch) as running:
        running.files["/file"] = CONTENT
        yield running


def archive(names: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as stream:
        for name, content in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            stream.addfile(info, io.BytesIO(content))
    return target.getvalue()


@pytest.mark.parametrize(
    ("there", "ranges"),
    [
        (None, [""]),
        (CONTENT[:100], ["bytes=100-"]),
        # What lies there from before may be damaged: then everything once more.
        (b"x" * 100, ["bytes=100-", ""]),
    ],
)
def test_a_download_goes_on_where_it_stopped(vendor, tmp_path, there: bytes | None, ranges: list[str]) -> None:
    if there is not None:
        (tmp_path / "partial").write_bytes(there)
    fetch.download(f"{vendor.url}/file", tmp_path / "target", sha256(CONTENT), partial=tmp_path / "partial")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert [wanted for _, _, _, wanted in vendor.seen] == ranges
    assert not (tmp_path / "partial").exists()


def test_a_broken_connection_is_taken_up_again(vendor, tmp_path) -> None:
    vendor.broken["/file"] = 1000
    fetch.download(f"{vendor.url}/file", tmp_path / "target", sha256(CONTENT), partial=tmp_path / "partial")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert [wanted for _, _, _, wanted in vendor.seen] == ["", "bytes=1000-"]


def test_another_hash_leaves_nothing(vendor, tmp_path) -> None:
    vendor.files["/file"] = flipped(CONTENT)
    with pytest.raises(TrainyardError) as failure:
        fetch.download(f"{vendor.url}/file", tmp_path / "target", sha256(CONTENT), partial=tmp_path / "partial")
    facts = {"url": f"{vendor.url}/file", "expected": sha256(CONTENT), "found": sha256(flipped(CONTENT))}
    assert failure.value.facts == facts
    assert all(fact in str(failure.value) for fact in facts.values())
    assert not (tmp_path / "target").exists()
    assert not (tmp_path / "partial").exists()


def test_a_large_answer_is_not_read(vendor) -> None:
    with pytest.raises(fetch.HttpError, match="more than 100 bytes"):
        fetch.read(f"{vendor.url}/file", limit=100)


@pytest.mark.parametrize(("path", "token", "expected"), [("/file", "", True), ("/v2/", "t", True), ("/no", "", False)])
def test_whether_an_origin_answers(vendor, path: str, token: str, expected: bool) -> None:
    vendor.token = token
    assert fetch.answers(f"{vendor.url}{path}") is expected


def test_a_closed_port_does_not_answer() -> None:
    assert not fetch.answers("https://127.0.0.1:9/")


def test_a_server_that_another_authority_signed_is_not_believed(vendor, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(fetch.HttpError, match="CERTIFICATE_VERIFY_FAILED"):
        fetch.read(f"{vendor.url}/file")


def test_members_of_an_archive(vendor, tmp_path) -> None:
    packed = archive({"./bin/tool": b"tool", "LICENSE": b"text"})
    vendor.files["/tool.tgz"] = packed
    wanted = Download(f"{vendor.url}/tool.tgz", sha256(packed), (("a/tool", "bin/tool"), ("LICENSE", "LICENSE")))
    download(wanted, tmp_path / "out", tmp_path / "partial")
    assert (tmp_path / "out/a/tool").read_bytes() == b"tool"
    with pytest.raises(TrainyardError, match="has no file bin/other"):
        other = Download(wanted.url, wanted.sha256, (("tool", "bin/other"),))
        download(other, tmp_path / "out", tmp_path / "partial")


LOCK = """schema: 1
artefacts:
  tool:
    kind: c_program  # a comment that stays
    version: v1
    source: project:tool.c
    program: tool
    upstream:
      downloads:
        - url: {url}/v1/tool#sha256=unpinned
          file: tool
  image:
    kind: image
    version: v1
    reference: "example.org/team/tool:v1"
    containerfile: project:image
    upstream: {{image: "{address}/team/tool:v1@unpinned"}}
"""


def test_pinning_writes_hashes_that_are_enforced_from_then_on(vendor, tmp_path) -> None:
    path = tmp_path / "lock.yml"
    path.write_text(LOCK.format(url=vendor.url, address=vendor.address))
    vendor.files |= {"/v1/tool": b"tool", "/v2/team/tool/manifests/v1": b"{}"}
    assert not any(artefact.origin.pinned for artefact in lock.load(path).values())
    pin.write(path, pin.resolve(lock.load(path), tmp_path))
    artefacts = lock.load(path)
    assert artefacts["image"].origin.digest == f"sha256:{sha256(b'{}')}"
    assert "# a comment that stays" in path.read_text()
    assert pin.resolve(artefacts, tmp_path) == []
    Upstream(tmp_path, tmp_path / "cache").fetch(artefacts["tool"], tmp_path / "out")
    assert (tmp_path / "out/tool").read_bytes() == b"tool"
    vendor.files["/v1/tool"] = b"evil"
    with pytest.raises(TrainyardError, match=f"expected was {sha256(b'tool')}"):
        Upstream(tmp_path, tmp_path / "cache").fetch(artefacts["tool"], tmp_path / "out2")


def test_a_lock_that_would_not_load_is_not_written(vendor, tmp_path: Path) -> None:
    path = tmp_path / "lock.yml"
    path.write_text(LOCK.format(url=vendor.url, address=vendor.address))
    before = path.read_text()
    with pytest.raises(TrainyardError, match="is not a SHA-256"):
        pin.write(path, [pin.Pin("tool", f"{vendor.url}/v1/tool#sha256=", "short")])
    with pytest.raises(TrainyardError, match="does not say"):
        pin.write(path, [pin.Pin("tool", "https://elsewhere/#sha256=", "0" * 64)])
    assert path.read_text() == before
    assert [entry.name for entry in tmp_path.iterdir() if "lock" in entry.name] == ["lock.yml"]
