"""host_files: what it keeps, hides and refuses."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.host.config_files import Command, File, HostFiles


def settle(wanted: HostFiles) -> list[str]:
    """Execute the plan, assert that it is then fulfilled, and return what was done."""
    plan = wanted.plan()
    plan.execute()
    assert not wanted.plan().changed
    return plan.done


def test_owner_and_group_are_wanted_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "key"
    settle(HostFiles([File(str(path), "one\n", 0o640, group="daemon")]))
    group = grp.getgrnam("daemon").gr_gid
    assert path.stat().st_gid == group
    assert settle(HostFiles([File(str(path), "two\n", 0o640, own=True)])) == [f"Write {path}"]
    assert path.stat().st_gid == group, "a file's group outlives its replacement"
    assert settle(HostFiles([File(str(path), "two\n", 0o640, owner="daemon", group="root")])) == [f"Write {path}"]
    assert (path.stat().st_uid, path.stat().st_gid) == (pwd.getpwnam("daemon").pw_uid, 0)


def test_a_group_that_its_package_brings_later_is_planned_and_refused_when_written(tmp_path: Path) -> None:
    plan = HostFiles([File(str(tmp_path / "key"), "x\n", group="no-such-group")]).plan()
    assert plan.changed
    with pytest.raises(TrainyardError, match="no-such-group"):
        plan.execute()


def test_an_extended_attribute_outlives_the_replacement(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("one\n")
    try:
        os.setxattr(path, "user.label", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    settle(HostFiles([File(str(path), "two\n", own=True)]))
    assert os.getxattr(path, "user.label") == b"mine"


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("old password\n")
    diff = HostFiles([File(str(tmp_path / "key"), "new password\n", secret=True, own=True)]).plan().diff()
    assert "password" not in str(diff)
    assert diff["before"] != diff["after"]


def test_a_file_that_was_put_aside_before_is_kept(tmp_path: Path) -> None:
    for name in ("a.list", "a.list.disabled"):
        (tmp_path / name).write_text(name)
    settle(HostFiles([], set_aside=[f"{tmp_path}/*.list"]))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.list.disabled": "a.list.disabled",
        "a.list.2.disabled": "a.list",
    }


@pytest.mark.parametrize("path", ["relative", "/etc/../shadow", "/etc/a\nb"])
def test_a_path_that_leaves_its_folder_is_refused(path: str) -> None:
    with pytest.raises(TrainyardError, match="cannot be the path"):
        File(path, "x\n")


def test_a_command_does_not_read_what_its_pattern_does_not_find(tmp_path: Path) -> None:
    command = Command("list", ["true"], [f"{tmp_path}/*.crt"])
    files = [File(f"{tmp_path}/deep/a.crt", "x\n"), File(f"{tmp_path}/.a.crt", "x\n")]
    done = settle(HostFiles(files, commands=[command], state_dir=str(tmp_path / "state")))
    assert done == [f"Write {file.path}" for file in files]


def test_a_command_that_its_package_runs_waits_for_the_package(tmp_path: Path) -> None:
    command = Command("list", ["no-such-program"], [f"{tmp_path}/*.crt"], by_package=True)
    wanted = HostFiles([File(f"{tmp_path}/a.crt", "x\n")], commands=[command], state_dir=str(tmp_path / "state"))
    assert settle(wanted)[-1] == "Skip `no-such-program`: the installation of its package runs it"
