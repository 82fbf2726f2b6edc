"""Tests of archives with paths outside their folder, and of other files."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from data_import.folder import unpack
from engine.errors import InputError


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_that_leads_out_writes_nothing_there(tmp_path: Path, kind: str) -> None:
    file, folder = tmp_path / "archive", tmp_path / "folder"
    folder.mkdir()
    if kind == "tar":
        with tarfile.open(file, "w") as made:
            made.addfile(tarfile.TarInfo("../evil"), io.BytesIO())
    else:
        with zipfile.ZipFile(file, "w") as made:
            made.writestr("../evil", "x")
    with pytest.raises(InputError):
        unpack(file, folder)
    assert not (tmp_path / "evil").exists()


def test_what_is_no_archive_is_kept_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"plain")
    (tmp_path / "folder").mkdir()
    assert unpack(tmp_path / "file", tmp_path / "folder") == (1, 5)
    assert (tmp_path / "folder" / "data").read_bytes() == b"plain"
