"""host_files: what is planned for which state, and that executing the plan makes the next one empty."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainyard.core import files as core_files
from trainyard.core.errors import TrainyardError
from trainyard.host.config_files import Command, File, HostFiles
from trainyard.host.ownership import MARKER

BLOCK = "# BEGIN trainyard\n10.0.0.2 mirror\n# END trainyard\n"


def settle(wanted: HostFiles) -> list[str]:
    """Execute the plan, assert that it is then fulfilled, and return what was done."""
    plan = wanted.plan()
    plan.execute()
    again = wanted.plan()
    assert not again.changed, again.steps
    return [step.what for step in plan.steps]


def test_writes_modifies_and_repairs_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.conf"
    assert settle(HostFiles([File(str(path), f"{MARKER} 1\n")])) == [f"Write {path}"]
    assert path.read_text() == f"{MARKER} 1\n"
    assert settle(HostFiles([File(str(path), f"{MARKER} 2\n")])) == [f"Write {path}"]
    path.chmod(0o666)
    assert settle(HostFiles([File(str(path), f"{MARKER} 2\n", 0o600)])) == [f"Write {path}"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["a.conf"]


def test_plan_alone_writes_nothing_and_shows_both_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("old\n")
    path.chmod(0o644)
    diff = HostFiles([File(str(path), "new\n", own=True)]).plan().diff()
    assert path.read_text() == "old\n"
    assert diff["before"] == {str(path): {"mode": "0644", "text": ["old"]}}
    assert diff["after"] == {str(path): {"mode": "0644", "text": ["new"]}}


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        ("127.0.0.1 localhost\n", "10.0.0.2 mirror", "127.0.0.1 localhost\n" + BLOCK),
        ("127.0.0.1 localhost", "10.0.0.2 mirror\n", "127.0.0.1 localhost\n" + BLOCK),
        ("a\n# BEGIN trainyard\nold\n# END trainyard\nb\n", "10.0.0.2 mirror", "a\n" + BLOCK + "b\n"),
        ("a\n" + BLOCK + "b\n", "", "a\nb\n"),
        ("a\n", "", "a\n"),
        # A lost end marker: the user's lines are not taken for ours.
        ("# BEGIN trainyard\na\n", "10.0.0.2 mirror", "# BEGIN trainyard\na\n" + BLOCK),
    ],
)
def test_block(tmp_path: Path, before: str, content: str, after: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(before)
    path.chmod(0o640)
    plan = HostFiles([File(str(path), content, None, block=True)]).plan()
    plan.execute()
    assert path.read_text() == after
    assert plan.changed == (before != after)
    assert path.stat().st_mode & 0o777 == 0o640


def test_an_empty_block_makes_no_file(tmp_path: Path) -> None:
    assert not HostFiles([File(str(tmp_path / "hosts"), "", None, block=True)]).plan().changed


def test_stale_files_go_only_if_they_are_ours(tmp_path: Path) -> None:
    ours, theirs, wanted = tmp_path / "a.toml", tmp_path / "b.toml", tmp_path / "c.toml"
    ours.write_text(f"# {MARKER}\n")
    theirs.write_text("mine\n")
    done = settle(HostFiles([File(str(wanted), f"# {MARKER}\n")], stale=[f"{tmp_path}/*.toml"]))
    assert done == [f"Write {wanted}", f"Remove stale {ours}"]
    assert theirs.exists() and wanted.exists()


def test_set_aside_renames(tmp_path: Path) -> None:
    (tmp_path / "debian.sources").write_text("Types: deb\n")
    wanted = tmp_path / "trainyard-site.sources"
    settle(HostFiles([File(str(wanted), "x\n")], set_aside=[f"{tmp_path}/*.sources", f"{tmp_path}/nothing.list"]))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["debian.sources.disabled", "trainyard-site.sources"]


def test_a_refused_text_is_not_written(tmp_path: Path) -> None:
    wanted = HostFiles([File(str(tmp_path / "a.toml"), "bad\n", validate=["grep", "--quiet", "good", "%s"])])
    with pytest.raises(TrainyardError, match=r"a\.toml is refused by its validator"):
        wanted.plan()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_validator_is_said(tmp_path: Path) -> None:
    wanted = HostFiles([File(str(tmp_path / "a.toml"), "x\n", validate=["no-such-validator", "%s"])])
    assert wanted.plan().changed
    assert wanted.not_validated == [str(tmp_path / "a.toml")]


def test_commands_run_on_new_changed_and_removed_input(tmp_path: Path) -> None:
    state, source, count = tmp_path / "state", tmp_path / "in", tmp_path / "count"
    command = Command("list", ["sh", "-c", f"echo x >> {count}"], [f"{source}/*.crt"])

    def wanted(*files: File) -> HostFiles:
        return HostFiles(files, stale=[f"{source}/*.crt"], commands=[command], state_dir=str(state))

    assert not wanted().plan().changed, "nothing to read and never run"
    assert settle(wanted(File(f"{source}/a.crt", MARKER)))[-1].startswith("Run ")
    assert settle(wanted(File(f"{source}/a.crt", MARKER + "2")))[-1].startswith("Run ")
    assert settle(wanted()) == [f"Remove stale {source}/a.crt", f"Run sh -c echo x >> {count}"]
    assert count.read_text().count("x") == 3


def test_a_failed_command_runs_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    wanted = HostFiles(
        [File(str(tmp_path / "a.crt"), "x\n")],
        commands=[Command("flag", ["test", "-e", str(flag)], [f"{tmp_path}/*.crt"])],
        state_dir=str(tmp_path / "state"),
    )
    with pytest.raises(TrainyardError):
        wanted.plan().execute()
    flag.touch()
    assert settle(wanted) == [f"Run test -e {flag}"]


def test_a_bind_mounted_file_is_written_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hosts"
    path.write_text("old\n")
    inode = path.stat().st_ino

    def busy(source: str, target: str, **_: int) -> None:
        raise OSError(16, os.strerror(16))

    monkeypatch.setattr(core_files.os, "replace", busy)
    settle(HostFiles([File(str(path), "new\n", own=True)]))
    assert path.stat().st_ino == inode
    assert [entry.name for entry in tmp_path.iterdir()] == ["hosts"]


def test_a_directory_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.conf").mkdir()
    with pytest.raises(TrainyardError, match=r"a\.conf cannot be read"):
        HostFiles([File(str(tmp_path / "a.conf"), "x\n")]).plan()
