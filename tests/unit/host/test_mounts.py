"""mount_unit: the names of units, what is mounted and by whom it is used, and what is planned for which state."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.host import mount_plan
from ansible.module_utils.trainyard.host.mount_plan import Seen, make_plan, make_removal, observe, probe
from ansible.module_utils.trainyard.host.mounts import Entry, Mount, escaped, mounted_at, parse, unit_text, users

MOUNT = Mount("/srv/files", "10.1.0.5:/export", "nfs4", ["nfsvers=4.1", "hard", "_netdev"], read_ahead_kb=15360)
UNIT = unit_text(MOUNT)
ENTRY = Entry("0:53", "/srv/files", "nfs4", "10.1.0.5:/export")
KEPT = {"UnitFileState": "enabled", "NeedDaemonReload": "no", "FragmentPath": "/etc/systemd/system/srv-files.mount"}
MOUNTED = Seen(ENTRY, UNIT, KEPT, read_ahead_kb=15360)
WRITE = ["Write /etc/systemd/system/srv-files.mount", "Reload the units of systemd"]
REMOVE = ["Mount /srv/files at no boot", "Remove /etc/systemd/system/srv-files.mount", WRITE[1]]
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
    assert users(ENTRY, str(tmp_path)) == ["systemd (pid 1)", "python (pid 30)"]


def test_another_mount_of_the_same_file_system_is_no_pod(tmp_path: Path) -> None:
    """The kernel gives both the same number where their options are the same; services of the host see both."""
    line = "22 21 0:53 / {} rw - nfs4 10.1.0.5:/export rw\n"
    both = line.format("/srv/files") + line.format("/mnt/by-hand")
    process(tmp_path, 1, "1", "systemd", both)
    process(tmp_path, 20, "2", "systemd-udevd", both)
    assert users(ENTRY, str(tmp_path)) == []
    process(tmp_path, 30, "3", "python", line.format("/data"))
    assert users(ENTRY, str(tmp_path)) == ["python (pid 30)"]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (MOUNTED, []),
        (
            Seen(folder=False),
            [
                "Make the folder /srv/files",
                *WRITE,
                "Mount /srv/files at every boot",
                "Mount 10.1.0.5:/export at /srv/files",
            ],
        ),
        # Cut off after the unit was written, after it was read, and after it was enabled.
        (
            Seen(None, UNIT, {"NeedDaemonReload": "yes"}),
            [WRITE[1], "Mount /srv/files at every boot", "Mount 10.1.0.5:/export at /srv/files"],
        ),
        (Seen(None, UNIT, KEPT), ["Mount 10.1.0.5:/export at /srv/files"]),
        (dataclasses.replace(MOUNTED, unit=UNIT.replace("hard", "soft")), [*WRITE, "Mount /srv/files anew"]),
        # Cut off between a new unit and the new mount.
        (dataclasses.replace(MOUNTED, older=True), ["Mount /srv/files anew"]),
        (dataclasses.replace(MOUNTED, read_ahead_kb=128), ["Read 15360 KiB ahead"]),
        (dataclasses.replace(MOUNTED, read_ahead_kb=None), []),
        (dataclasses.replace(MOUNTED, users=["python (pid 3)"]), []),
    ],
)
def test_plan(seen: Seen, expected: list[str]) -> None:
    plan = make_plan(MOUNT, seen)
    assert [step.what for step in plan.steps] == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (MOUNTED, ["Unmount /srv/files", *REMOVE]),
        # Cut off after it was unmounted; the server that is gone is not asked.
        (Seen(None, UNIT, KEPT), REMOVE),
        (Seen(), []),
        # Somebody else's.
        (Seen(ENTRY, None, {}), []),
    ],
)
def test_removal(seen: Seen, expected: list[str]) -> None:
    assert [step.what for step in make_removal(MOUNT, seen).steps] == expected


def test_what_pods_use_is_not_unmounted() -> None:
    with pytest.raises(TrainyardError, match="has to be unmounted and is in use by python"):
        make_removal(MOUNT, dataclasses.replace(MOUNTED, users=["python (pid 3)"]))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Seen(inside=["a", "b", "c", "d", "e"]), "holds other files, which the mount would hide: a, b, c, and 2 more"),
        (Seen(None, UNIT, KEPT, inside=["a"]), "holds other files"),
        (
            Seen(ENTRY, None, {"FragmentPath": "/run/systemd/generator/srv-files.mount"}),
            r"is mounted at /srv/files already by /run/systemd/generator/srv-files.mount",
        ),
        (
            dataclasses.replace(MOUNTED, older=True, users=["python (pid 3)"]),
            r"has to be mounted anew and is in use by python \(pid 3\)",
        ),
    ],
)
def test_what_would_do_harm_is_refused(seen: Seen, said: str) -> None:
    with pytest.raises(TrainyardError, match=said) as caught:
        make_plan(MOUNT, seen)
    assert caught.value.remedy


def test_a_server_that_never_answers_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that hangs stands for a question to a mount that does."""
    (tmp_path / "stat").write_text("#!/bin/sh\nexec sleep 300\n", encoding="utf-8")
    (tmp_path / "stat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()
    with pytest.raises(TrainyardError, match="/srv/files does not answer within 1 s") as caught:
        probe(dataclasses.replace(MOUNT, probe_timeout=1))
    assert "10.1.0.5:/export" in caught.value.remedy and time.monotonic() - began < 60


def test_it_is_found_how_a_mount_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine's own /proc, which is a mount for certain; systemd is a program that says what it is told."""
    (tmp_path / "systemctl").write_text(
        "#!/bin/sh\necho UnitFileState=enabled\necho ActiveEnterTimestampMonotonic=0\n", encoding="utf-8"
    )
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(mount_plan, "users", lambda entry: [])
    seen = observe(dataclasses.replace(MOUNT, path="/proc"))
    assert seen.entry and seen.entry.fstype == "proc" and seen.unit is None
    assert seen.properties["UnitFileState"] == "enabled"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    seen = observe(dataclasses.replace(MOUNT, path=str(tmp_path / "folder")))
    assert (seen.entry, seen.inside) == (None, ["file"])
    assert observe(dataclasses.replace(MOUNT, path=str(tmp_path / "none"))).folder is False
    with pytest.raises(TrainyardError, match="is not a folder"):
        observe(dataclasses.replace(MOUNT, path=str(tmp_path / "folder" / "file")))
