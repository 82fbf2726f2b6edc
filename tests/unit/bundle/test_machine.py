"""What the building machine must offer: Go, room, wrapper modules that agree with the lock, a Debian archive."""

from __future__ import annotations

import pytest

from trainyard.bundle import build_machine
from trainyard.bundle.build import go
from trainyard.bundle.context import Context
from trainyard.bundle.lockfile import Artefact
from trainyard.core.errors import TrainyardError


@pytest.mark.parametrize(("required", "refused"), [("v1.2.3", False), ("v1.2.30", True), ("v1.2", True)])
def test_a_wrapper_module_of_another_version_is_refused(tmp_path, required: str, refused: bool) -> None:
    context = Context(tmp_path, tmp_path / "cache", "")
    (tmp_path / "go").mkdir()
    (tmp_path / "go/go.mod").write_text(f"module wrapper\n\nrequire example.org/tool {required} // indirect\n")
    wanted = Artefact("tool", "go_programs", "v1.2.3", {"wrapper": "project:go", "programs": {}}, {}, None)
    if refused:
        with pytest.raises(TrainyardError, match=r"v1.2.3 for tool, but its wrapper requires another"):
            go._wrapper(wanted, context)
    else:
        assert (go._wrapper(wanted, context) / "go.mod").exists()


def test_modules_are_verified_before_they_are_compiled(tmp_path, monkeypatch) -> None:
    context = Context(tmp_path, tmp_path / "cache", "")
    (tmp_path / "wrapper").mkdir()
    (tmp_path / "wrapper/go.mod").write_text("require example.org/tool v1.2.3\n")
    (tmp_path / "go").write_text(f"#!/bin/sh\necho $* $GOPRIVATE $GONOSUMDB $GOINSECURE >> {tmp_path}/calls\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("GOPRIVATE", "*")
    recipe = {"wrapper": "project:wrapper", "programs": {"tool": "example.org/tool"}}
    go.programs(Artefact("tool", "go_programs", "v1.2.3", recipe, {}, None), tmp_path / "out", context)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[0] == "mod verify none none none"
    assert calls[1].startswith("build ")


@pytest.mark.parametrize(("version", "there"), [("go1.27.3", ""), ("go1.27.4", None), ("go1.27rc1", None)])
def test_another_go_than_the_pinned_one_is_replaced(tmp_path, monkeypatch, version: str, there: str | None) -> None:
    """By a pinned one; here there is none to be had, which is said."""
    (tmp_path / "go").write_text(f"#!/bin/sh\necho {version}\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "toolchain.txt").write_text("# Go\ngo-bin==1.27.3 --hash=sha256:0\nno such thing\n")
    if there is not None:
        assert build_machine.go_folder("1.26", tmp_path / "cache", tmp_path / "toolchain.txt") == there
    else:
        with pytest.raises(TrainyardError, match=r"Go is 1.27.*, 1.27.3 is pinned, .*Install Go 1.27.3"):
            build_machine.go_folder("1.26", tmp_path / "cache", tmp_path / "toolchain.txt")


def test_a_full_disk_is_refused_before_anything_is_made(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(build_machine, "DISK_GIB", 1 << 30)
    with pytest.raises(TrainyardError, match=r"GiB free, the bundle needs 1073741824"):
        build_machine.check_disk(tmp_path / "not" / "there")
    assert not (tmp_path / "not").exists()


def test_a_controller_with_a_builder_needs_little_room(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(build_machine, "DISK_GIB", 1 << 30)
    monkeypatch.setattr(build_machine, "DISK_DELIVERED_GIB", 0)
    build_machine.check_disk(tmp_path, delivered=True)
    monkeypatch.setattr(build_machine, "DISK_DELIVERED_GIB", 1 << 30)
    with pytest.raises(TrainyardError, match=r"GiB free, the bundle needs 1073741824"):
        build_machine.check_disk(tmp_path, delivered=True)


def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(build_machine.os, "access", lambda path, mode: False)
    with pytest.raises(TrainyardError, match=r"this user may not write in .*Set bundle_cache_dir to a folder"):
        build_machine.check_disk(tmp_path / "not" / "there")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deb http://mirror.example/debian trixie main", "http://mirror.example/debian"),
        ("deb [arch=amd64 signed-by=/a] https://mirror.example/debian/ trixie main", "https://mirror.example/debian/"),
        ("Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\n", "http://mirror.example/debian"),
        ("deb http://mirror.example/ubuntu noble main\n# deb http://old.example/debian x", None),
    ],
)
def test_the_archive_is_that_of_the_machine(tmp_path, monkeypatch, text: str, expected: str | None) -> None:
    (tmp_path / "a.sources").write_text(text)
    (tmp_path / "os-release").write_text('NAME="Debian GNU/Linux"\nID=debian\n')
    monkeypatch.setattr(build_machine, "SOURCES", (str(tmp_path / "*.sources"),))
    monkeypatch.setattr(build_machine, "OS_RELEASE", tmp_path / "os-release")
    if expected:
        assert build_machine.debian_mirror() == expected
    else:
        with pytest.raises(TrainyardError, match=r"Set bundle_debian_mirror"):
            build_machine.debian_mirror()


def test_ubuntu_takes_debians_public_archive(tmp_path, monkeypatch) -> None:
    (tmp_path / "a.sources").write_text("Types: deb\nURIs: http://mirror.example/ubuntu\nSuites: noble\n")
    (tmp_path / "os-release").write_text("ID=ubuntu\nID_LIKE=debian\n")
    monkeypatch.setattr(build_machine, "SOURCES", (str(tmp_path / "*.sources"),))
    monkeypatch.setattr(build_machine, "OS_RELEASE", tmp_path / "os-release")
    assert build_machine.debian_mirror() == build_machine.DEBIAN_ARCHIVE
