"""Pins: written into the lock once, enforced from then on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.bundle.vendors import sha256
from trainyard.bundle import lockfile, pin
from trainyard.bundle.vendor.upstream import Upstream
from trainyard.core.errors import TrainyardError

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
    assert not any(artefact.origin.pinned for artefact in lockfile.load(path).values())
    pin.write(path, pin.resolve(lockfile.load(path), tmp_path))
    artefacts = lockfile.load(path)
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
    with pytest.raises(TrainyardError, match="does not contain"):
        pin.write(path, [pin.Pin("tool", "https://elsewhere/#sha256=", "0" * 64)])
    assert path.read_text() == before
    assert [entry.name for entry in tmp_path.iterdir() if "lock" in entry.name] == ["lock.yml"]
