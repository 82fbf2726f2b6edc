"""Root below a folder of another user: a link there leads root nowhere, and nothing outside that folder changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trainyard.core import safe_paths
from trainyard.core.errors import TrainyardError
from trainyard.core.safe_paths import LinkError
from trainyard.host.config_files import File, Folder, HostFiles

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be led to files of others")

USER = 65534
"""nobody, which every Debian has."""


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """Files of root, which must be the same after each attack."""
    folder = tmp_path / "outside"
    (folder / "inner").mkdir(parents=True)
    (folder / "shadow").write_text("root:secret\n")
    (folder / "shadow").chmod(0o640)
    before = _state(folder)
    yield folder
    assert _state(folder) == before


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of the service's user, below one of root."""
    folder = tmp_path / "service" / "site"
    folder.mkdir(parents=True, mode=0o755)
    os.chown(folder, USER, USER)
    return folder


def _state(folder: Path) -> list[tuple[str, int, int, int, str]]:
    found = []
    for path in (folder, *sorted(folder.rglob("*"))):
        seen = path.lstat()
        text = path.read_text() if path.is_file() else ""
        found.append((str(path), seen.st_uid, seen.st_gid, seen.st_mode, text))
    return found


def _link(path: Path, target: Path) -> None:
    path.symlink_to(target)
    os.lchown(path, USER, USER)


def _file(path: Path) -> HostFiles:
    return HostFiles([File(str(path), "new\n", 0o600, owner="nobody", group="nogroup", secret=True)])


def _folder(path: Path) -> HostFiles:
    return HostFiles([], folders=[Folder(str(path), 0o700, "nobody", "nogroup")])


@pytest.mark.parametrize(
    ("wanted", "link", "target", "path"),
    [
        (_file, "kubeconfig", "shadow", "kubeconfig"),
        (_file, "console", "inner", "console/ca.crt"),
        (_file, "console", "", "console/shadow"),
        (_file, "kubeconfig", "new", "kubeconfig"),
        (_folder, "reprovision", "inner", "reprovision"),
        (_folder, "reprovision", "new", "reprovision"),
        (_folder, "a", "", "a/inner"),
        (_folder, "a", "inner", "a/b/c"),
    ],
)
def test_a_link_of_another_user_is_refused(
    theirs: Path, outside: Path, wanted: Callable[[Path], HostFiles], link: str, target: str, path: str
) -> None:
    _link(theirs / link, outside / target)
    with pytest.raises(LinkError, match=f"{link} on the way to"):
        wanted(theirs / path).plan().execute()


def test_a_link_that_comes_after_the_plan_is_refused(theirs: Path, outside: Path) -> None:
    for wanted in (_file(theirs / "kubeconfig"), _folder(theirs / "kubeconfig")):
        plan = wanted.plan()
        _link(theirs / "kubeconfig", outside / "shadow")
        with pytest.raises(LinkError):
            plan.execute()
        (theirs / "kubeconfig").unlink()


def test_files_and_folders_become_the_users_own(theirs: Path) -> None:
    for wanted in (_folder(theirs / "reports"), _file(theirs / "console" / "ca.crt")):
        wanted.plan().execute()
        assert not wanted.plan().changed
    for path, mode in ((theirs / "reports", 0o700), (theirs / "console" / "ca.crt", 0o600)):
        found = path.stat()
        assert (found.st_uid, found.st_mode & 0o7777) == (USER, mode)


def test_a_link_of_root_is_followed(tmp_path: Path) -> None:
    """Administrators move folders to another disk that way."""
    (tmp_path / "disk" / "etc").mkdir(parents=True)
    (tmp_path / "etc").symlink_to("disk/../disk/etc")
    (tmp_path / "disk" / "etc" / "a.conf").symlink_to(tmp_path / "b.conf")
    _file(tmp_path / "etc" / "a.conf").plan().execute()
    _folder(tmp_path / "etc" / "c").plan().execute()
    assert (tmp_path / "b.conf").read_text() == "new\n" and (tmp_path / "disk" / "etc" / "c").is_dir()


def test_a_link_of_another_user_in_a_folder_of_all_is_refused(tmp_path: Path, outside: Path) -> None:
    """As in /tmp, also where the kernel's own protection (fs.protected_symlinks) is off."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    _link(shared / "theirs", outside / "shadow")
    (shared / "ours").symlink_to(tmp_path / "ours")
    with pytest.raises(LinkError):
        _file(shared / "theirs").plan()
    _file(shared / "ours").plan().execute()
    assert (tmp_path / "ours").read_text() == "new\n"


def test_links_in_a_circle_and_what_is_no_file(tmp_path: Path, theirs: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"), safe_paths.at(str(tmp_path / "a")):
        pass
    os.mkfifo(theirs / "pipe")
    with pytest.raises(TrainyardError, match="not a regular file"):
        _file(theirs / "pipe").plan()
    with pytest.raises(TrainyardError, match="is not a folder"):
        _folder(theirs / "pipe").plan()
