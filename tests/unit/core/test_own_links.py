"""Whose links are followed: by the owner of the folder, its mode, and the owner of the link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainyard.core import files, safe_paths
from trainyard.core.safe_paths import LinkError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")

CALLER, OTHER = 65534, 65533
FOLLOWED = ""
THEIR_FOLDER = "is a link in a folder of another user."
THEIR_LINK = "is a link of another user."
GROUP = "is a link in a folder that is writable by its group."
ALL = "is a link in a folder that is writable by all users."


@pytest.mark.parametrize(
    ("caller", "folder", "mode", "link", "says"),
    [
        *((CALLER, CALLER, mode, CALLER, FOLLOWED) for mode in (0o755, 0o775, 0o777, 0o1775, 0o1777)),
        *((CALLER, 0, mode, CALLER, FOLLOWED) for mode in (0o755, 0o1775, 0o1777)),
        *((CALLER, OTHER, mode, CALLER, THEIR_FOLDER) for mode in (0o755, 0o775, 0o777, 0o1775, 0o1777)),
        (CALLER, CALLER, 0o755, OTHER, FOLLOWED),
        (CALLER, CALLER, 0o775, OTHER, GROUP),
        (CALLER, CALLER, 0o777, OTHER, ALL),
        (CALLER, CALLER, 0o1775, OTHER, THEIR_LINK),
        (CALLER, CALLER, 0o1777, OTHER, THEIR_LINK),
        (CALLER, CALLER, 0o1777, 0, FOLLOWED),
        (CALLER, 0, 0o775, CALLER, GROUP),
        (CALLER, 0, 0o1777, OTHER, THEIR_LINK),
        (0, 0, 0o755, OTHER, FOLLOWED),
        (0, 0, 0o775, 0, GROUP),
        (0, 0, 0o757, 0, ALL),
        (0, 0, 0o1777, 0, FOLLOWED),
        (0, 0, 0o1777, OTHER, THEIR_LINK),
        *((0, OTHER, mode, 0, THEIR_FOLDER) for mode in (0o755, 0o775, 0o1777)),
    ],
)
def test_a_link_is_followed_where_no_other_user_can_have_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caller: int, folder: int, mode: int, link: int, says: str
) -> None:
    (tmp_path / "real").mkdir()
    above = tmp_path / "above"
    above.mkdir()
    (above / "link").symlink_to(tmp_path / "real")
    os.lchown(above / "link", link, link)
    os.chown(above, folder, folder)
    above.chmod(mode)
    monkeypatch.setattr(safe_paths.os, "geteuid", lambda: caller)
    if not says:
        files.write(str(above / "link" / "file"), "x", 0o600)
        assert (tmp_path / "real" / "file").read_text() == "x"
        return
    with pytest.raises(LinkError) as refused:
        files.write(str(above / "link" / "file"), "x", 0o600)
    assert refused.value.message.endswith(says)
    assert ("0755" in refused.value.remedy) == ("writable" in says)
    assert not (tmp_path / "real" / "file").exists()


def test_a_link_that_is_replaced_while_it_is_looked_at_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its group could put the caller's own link in the place of theirs once its text is read."""
    above = tmp_path / "above"
    above.mkdir()
    for name, owner in (("link", OTHER), ("own", CALLER)):
        (above / name).symlink_to(tmp_path / f"of-{owner}")
        os.lchown(above / name, owner, owner)
    os.chown(above, CALLER, CALLER)
    above.chmod(0o775)
    monkeypatch.setattr(safe_paths.os, "geteuid", lambda: CALLER)
    read = os.readlink

    def replaced(path: str, *, dir_fd: int) -> str:
        text = read(path, dir_fd=dir_fd)
        os.replace(above / "own", above / "link")
        return text

    monkeypatch.setattr(safe_paths.os, "readlink", replaced)
    with pytest.raises(LinkError, match="writable by its group"), safe_paths.at(str(above / "link")):
        pass


def test_a_folder_of_the_way_need_not_be_readable(tmp_path: Path) -> None:
    """As /home/USER of mode 0711 is to a service's user."""
    inner = tmp_path / "inner"
    inner.mkdir()
    os.chown(inner, CALLER, CALLER)
    tmp_path.chmod(0o711)
    for above in tmp_path.parents:
        if above.stat().st_mode & 0o077 == 0:
            above.chmod(0o711)
    child = os.fork()
    if not child:
        os.setgid(CALLER)
        os.setuid(CALLER)
        try:
            files.write(str(inner / "file"), "text", 0o600)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (inner / "file").read_text() == "text" and (inner / "file").stat().st_uid == CALLER
