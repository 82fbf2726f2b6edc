"""What of a folder is packed, and each thing that no image can hold, by name."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.oci import code_folder

NOBODY = 65534


def names(code: Path) -> list[str]:
    return [entry.name for entry in code_folder.read(code)]


def test_files_and_the_folders_on_the_way_to_them_are_sorted(code) -> None:
    expected = [
        "mine",
        "mine/__init__.py",
        "mine/tool",
        "mine/tool/__main__.py",
        "mine/train.py",
        "run.sh",
        "worker.py",
    ]
    assert names(code) == expected


def test_what_a_clone_would_not_have_is_not_packed(code) -> None:
    before = names(code)
    for path in (".git", "__pycache__", "mine/__pycache__", "empty/deep"):
        (code / path).mkdir(parents=True)
    (code / ".git/HEAD").write_text("ref")
    (code / "mine/__pycache__/train.pyc").write_text("")
    (code / ".trainignore").write_text("# nothing\n")
    assert names(code) == before


def test_a_folder_that_is_left_out_is_not_entered(code) -> None:
    (code / "data").mkdir()
    (code / "data/out").symlink_to("/etc")
    (code / ".trainignore").write_text("data/\n")
    assert "data" not in names(code)


def test_links_inside_the_folder_stay_links(code) -> None:
    (code / "again.py").symlink_to("worker.py")
    (code / "mine/up").symlink_to("../mine/tool")
    found = {entry.name: entry.target for entry in code_folder.read(code) if entry.target}
    assert found == {"again.py": "worker.py", "mine/up": "../mine/tool"}


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../mine-not/x", "mine/../../other", "outward/x"])
def test_a_link_out_of_the_folder_is_refused(code, target: str) -> None:
    (code.parent / "other").mkdir()
    if target == "outward/x":
        (code / "deep").mkdir()
        (code / "deep/outward").symlink_to("../..")
        target = "deep/outward/other"
    (code / "way.py").symlink_to(target)
    with pytest.raises(TrainyardError, match=rf"way\.py is a link that leads out of the folder, to {target}[;.]"):
        code_folder.read(code)


def test_an_absolute_link_into_the_folder_is_refused_too(code) -> None:
    (code / "way.py").symlink_to(code / "worker.py")
    with pytest.raises(TrainyardError, match=r"way\.py is a link that leads out"):
        code_folder.read(code)


def test_what_is_no_file_is_refused_by_its_kind(code, monkeypatch) -> None:
    os.mkfifo(code / "pipe")
    monkeypatch.chdir(code)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("door")
        with pytest.raises(TrainyardError, match=r"cannot be packed: door is a socket; pipe is a pipe\."):
            code_folder.read(code)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_refused(code) -> None:
    os.mknod(code / "null", 0o600 | 0o020000, os.makedev(1, 3))
    with pytest.raises(TrainyardError, match=r"cannot be packed: null is a device\."):
        code_folder.read(code)


def test_names_that_an_image_cannot_hold_are_refused(code) -> None:
    (code / ".wh.train").mkdir()
    (code / ".wh.train/x").write_text("")
    (code / os.fsdecode(b"\xff.py")).write_text("")
    with pytest.raises(TrainyardError) as refused:
        code_folder.read(code)
    assert "with the prefix .wh., which deletes a file" in refused.value.message
    assert "a name that is not UTF-8" in refused.value.message


@pytest.fixture
def somebody() -> Iterator[Path]:
    """A folder of a user who is not root, as whom the test runs."""
    place = Path(mkdtemp(prefix="trainyard-test-"))
    (place / "worker.py").write_text("")
    (place / "deep").mkdir()
    (place / "deep/model.py").write_text("")
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(place, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    yield place
    if is_root:
        os.seteuid(0)
    (place / "deep").chmod(0o755)
    shutil.rmtree(place)


@pytest.mark.parametrize("name", ["worker.py", "deep"])
def test_what_cannot_be_read_is_refused(somebody, name: str) -> None:
    user = os.geteuid()
    if os.getuid() == 0:
        os.seteuid(0)
    (somebody / name).chmod(0)
    os.seteuid(user)
    with pytest.raises(TrainyardError, match=rf"{name} cannot be read"):
        code_folder.read(somebody)


def test_too_much_names_the_biggest_files(code) -> None:
    for name, mib in (("big.bin", 40), ("bigger.bin", 41)):
        with (code / name).open("wb") as stream:
            stream.truncate(mib << 20)
    message = r"has 81\.0 MiB, at most 64 MiB are packed; .* are bigger\.bin \(41\.0 MiB\), big\.bin \(40\.0 MiB\), "
    with pytest.raises(TrainyardError, match=message):
        code_folder.read(code)
    (code / ".trainignore").write_text("big.bin\n")
    assert "bigger.bin" in names(code)


def test_exactly_the_limit_is_packed(tmp_path) -> None:
    with (tmp_path / "all.bin").open("wb") as stream:
        stream.truncate(code_folder.LIMIT)
    assert names(tmp_path) == ["all.bin"]


def test_no_folder_no_files_and_many_faults(code) -> None:
    with pytest.raises(TrainyardError, match=r"code folder .*/absent does not exist\. Set the folder"):
        code_folder.read(code / "absent")
    with pytest.raises(TrainyardError, match=r"worker\.py is not a folder"):
        code_folder.read(code / "worker.py")
    (code / "empty").mkdir()
    with pytest.raises(TrainyardError, match="has no file that could be packed"):
        code_folder.read(code / "empty")
    for number in range(7):
        (code / f"out{number}").symlink_to("/")
    with pytest.raises(TrainyardError, match=r"out4 is a link [^;]*; and 2 more\."):
        code_folder.read(code)
