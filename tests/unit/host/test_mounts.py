"""mount_unit: the names of units and their texts, what is mounted and by whom it is used."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from trainyard.host.mounts import (
    Entry,
    Mount,
    differs,
    escaped,
    mounted_at,
    other_places,
    parse,
    retry_text,
    unit_text,
    users,
)

MOUNT = Mount("/srv/files", "10.1.0.5:/export", "nfs4", ["nfsvers=4.1", "hard", "_netdev"], read_ahead_kb=15360)
UNIT, RETRY = unit_text(MOUNT), retry_text(MOUNT)
ENTRY = Entry("0:53", "/srv/files", "nfs4", "10.1.0.5:/export")
INFO = """\
21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:53 / /srv/my\\040files rw,relatime shared:2 - nfs4 10.1.0.5:/old rw,vers=4.1
23 22 0:54 / /srv/my\\040files rw,relatime shared:3 master:9 - nfs4 10.1.0.5:/new rw
"""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/srv/files", "srv-files"),
        ("/srv//files/", "srv-files"),
        ("/mnt/my-files", r"mnt-my\x2dfiles"),
        ("/.hidden/a.b_c:d", r"\x2ehidden-a.b_c:d"),
        ("/a b/é", r"a\x20b-\xc3\xa9"),
        ("/", "-"),
    ],
)
def test_names_of_units_are_those_of_systemd(path: str, name: str) -> None:
    assert escaped(path) == name
    if shutil.which("systemd-escape"):
        said = subprocess.run(["systemd-escape", "--path", path], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == name


def test_the_last_of_several_mounts_is_the_one_that_is_seen() -> None:
    assert mounted_at("/srv/my files", INFO) == Entry("0:54", "/srv/my files", "nfs4", "10.1.0.5:/new")
    assert mounted_at("/srv", INFO) is None
    assert len(parse(INFO + "nonsense\n\n")) == 3


def test_a_unit_has_no_specifiers() -> None:
    text = unit_text(dataclasses.replace(MOUNT, source="host:/100%i", options=[]))
    assert "What=host:/100%%i\n" in text and "Options=" not in text
    assert "remote-fs.target" not in text and "Options=nfsvers=4.1,hard,_netdev\n" in UNIT


def process(proc: Path, pid: int, space: str, comm: str, mountinfo: str) -> None:
    folder = proc / str(pid)
    (folder / "ns").mkdir(parents=True)
    (folder / "ns" / "mnt").symlink_to(f"mnt:[{space}]")
    (folder / "comm").write_text(f"{comm}\n", encoding="utf-8")
    (folder / "mountinfo").write_text(mountinfo, encoding="utf-8")


def test_pods_use_it_and_services_of_the_host_do_not(tmp_path: Path) -> None:
    line = "22 21 0:53 / {} rw - nfs4 10.1.0.5:/export rw\n"
    process(tmp_path, 1, "1", "systemd", line.format("/srv/files"))
    process(tmp_path, 20, "2", "systemd-udevd", line.format("/srv/files"))
    process(tmp_path, 30, "3", "python", line.format("/data"))
    process(tmp_path, 31, "3", "its child", line.format("/data"))
    process(tmp_path, 40, "4", "other", line.format("/data").replace("0:53", "0:54"))
    (tmp_path / "50").mkdir()
    (tmp_path / "self").mkdir()
    assert users(ENTRY, str(tmp_path)) == ["python (pid 30)"]
    process(tmp_path, 2, "1", "in the host's own space", line.format("/srv/files"))
    (tmp_path / "1" / "mountinfo").write_text(
        line.format("/srv/files") + line.format("/var/lib/kubelet/pods/x/volume-subpaths/a"), encoding="utf-8"
    )
    assert users(ENTRY, str(tmp_path)) == ["a volume of a pod below /var/lib/kubelet/", "python (pid 30)"]


def test_another_mount_of_the_same_file_system_is_no_pod(tmp_path: Path) -> None:
    """The kernel gives both the same number where their options are the same; services of the host see both."""
    line = "22 21 0:53 / {} rw - nfs4 10.1.0.5:/export rw\n"
    both = line.format("/srv/files") + line.format("/mnt/by-hand")
    process(tmp_path, 1, "1", "systemd", both)
    process(tmp_path, 20, "2", "systemd-udevd", both)
    assert users(ENTRY, str(tmp_path)) == []
    process(tmp_path, 30, "3", "python", line.format("/data"))
    assert users(ENTRY, str(tmp_path)) == ["python (pid 30)"]


def test_a_pod_may_have_a_file_system_below(tmp_path: Path) -> None:
    """What a server gives as a file system of its own has another number."""
    line = "22 21 {} / {} rw - nfs4 10.1.0.5:/export{} rw\n"
    host = line.format("0:53", "/srv/files", "") + line.format("0:54", "/srv/files/training", "/training")
    process(tmp_path, 1, "1", "systemd", host)
    assert users(ENTRY, str(tmp_path)) == []
    process(tmp_path, 30, "3", "python", line.format("0:54", "/data", "/training"))
    process(tmp_path, 31, "4", "other", line.format("0:55", "/data", "/training"))
    assert users(ENTRY, str(tmp_path)) == ["python (pid 30)"]


@pytest.mark.parametrize(
    ("mount", "entry", "other"),
    [
        (MOUNT, ENTRY, False),
        (dataclasses.replace(MOUNT, source="10.1.0.5://export/"), ENTRY, False),
        (dataclasses.replace(MOUNT, source="[fd00::1]:/"), dataclasses.replace(ENTRY, source="[fd00::1]:/"), False),
        (dataclasses.replace(MOUNT, source="10.1.0.5:/"), ENTRY, True),
        (MOUNT, dataclasses.replace(ENTRY, fstype="ext4"), True),
        # The helper of EFS mounts from a port of its own.
        (dataclasses.replace(MOUNT, fstype="efs"), dataclasses.replace(ENTRY, source="127.0.0.1:/"), False),
        (dataclasses.replace(MOUNT, fstype="efs"), dataclasses.replace(ENTRY, fstype="ext4"), True),
    ],
)
def test_what_is_mounted_in_the_place_of_ours(mount: Mount, entry: Entry, other: bool) -> None:
    assert differs(mount, entry) is other


def test_what_another_path_has_left_is_found(tmp_path: Path) -> None:
    for path in ("/srv/before", "/srv/files", "/srv/100%"):
        there = dataclasses.replace(MOUNT, path=path)
        (tmp_path / there.unit).write_text(unit_text(there), encoding="utf-8")
    (tmp_path / "theirs.mount").write_text("[Mount]\nWhere=/theirs\n", encoding="utf-8")
    (tmp_path / "masked.mount").symlink_to("/dev/null")
    assert other_places(MOUNT, str(tmp_path)) == ["/srv/100%", "/srv/before"]


def test_systemd_tries_again_what_could_not_be_mounted() -> None:
    mount = dataclasses.replace(MOUNT, path="/mnt/my-files")
    assert r"OnFailure=mnt-my\x2dfiles-retry.service" in unit_text(mount)
    # A command line takes a backslash for an escape.
    assert r"ExecStart=/usr/bin/systemctl start mnt-my\\x2dfiles.mount" in retry_text(mount)
    assert "Restart=on-failure" in RETRY and "StartLimitIntervalSec=0" in RETRY
