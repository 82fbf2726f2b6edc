"""mount_unit: what is planned for which state, and what is refused."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import pytest
import service_probe

from trainyard.core.errors import TrainyardError
from trainyard.host import mounts
from trainyard.host.mount_plan import make_plan, make_removal
from trainyard.host.mounts import Entry, Mount, Seen, observe, probe, retry_text, unit_text

MOUNT = Mount("/srv/files", "10.1.0.5:/export", "nfs4", ["nfsvers=4.1", "hard", "_netdev"], read_ahead_kb=15360)
UNIT, RETRY = unit_text(MOUNT), retry_text(MOUNT)
ENTRY = Entry("0:53", "/srv/files", "nfs4", "10.1.0.5:/export")
KEPT = {"UnitFileState": "enabled", "NeedDaemonReload": "no", "FragmentPath": "/etc/systemd/system/srv-files.mount"}
MOUNTED = Seen(ENTRY, UNIT, RETRY, KEPT, read_ahead_kb=15360)
WRITE = ["Write /etc/systemd/system/srv-files.mount", "Reload the units of systemd"]
AGAIN = "Write /etc/systemd/system/srv-files-retry.service"
STOP = [
    "Stop the retries to mount /srv/files (srv-files-retry.service)",
    "Remove /etc/systemd/system/srv-files-retry.service",
]
REMOVE = ["Disable the mount of /srv/files at boot", "Remove /etc/systemd/system/srv-files.mount", WRITE[1]]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (MOUNTED, []),
        (
            Seen(folder=False),
            [
                "Create the folder /srv/files",
                WRITE[0],
                AGAIN,
                WRITE[1],
                "Enable the mount of /srv/files at boot",
                "Mount 10.1.0.5:/export at /srv/files",
            ],
        ),
        # Cut off after the unit was written, after it was read, and after it was enabled.
        (
            Seen(None, UNIT, None, {"NeedDaemonReload": "no"}),
            [AGAIN, WRITE[1], "Enable the mount of /srv/files at boot", "Mount 10.1.0.5:/export at /srv/files"],
        ),
        (
            Seen(None, UNIT, RETRY, {"NeedDaemonReload": "yes"}),
            [WRITE[1], "Enable the mount of /srv/files at boot", "Mount 10.1.0.5:/export at /srv/files"],
        ),
        (Seen(None, UNIT, RETRY, KEPT), ["Mount 10.1.0.5:/export at /srv/files"]),
        (dataclasses.replace(MOUNTED, unit=UNIT.replace("hard", "soft")), [*WRITE, "Remount /srv/files"]),
        # Cut off between a new unit and the new mount.
        (dataclasses.replace(MOUNTED, older=True), ["Remount /srv/files"]),
        (dataclasses.replace(MOUNTED, read_ahead_kb=128), ["Set the read-ahead to 15360 KiB"]),
        (dataclasses.replace(MOUNTED, read_ahead_kb=None), []),
        (dataclasses.replace(MOUNTED, users=["python (pid 3)"]), []),
        # Another service to mount it again is no other mount.
        (dataclasses.replace(MOUNTED, retry=None, users=["python (pid 3)"]), [AGAIN, WRITE[1]]),
    ],
)
def test_plan(seen: Seen, expected: list[str]) -> None:
    plan = make_plan(MOUNT, seen)
    assert [step.what for step in plan.steps] == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (MOUNTED, [*STOP, "Unmount /srv/files", *REMOVE]),
        (
            dataclasses.replace(MOUNTED, answers=False),
            [*STOP, "Force the unmount of /srv/files: no answer from its server", *REMOVE],
        ),
        # Cut off after it was unmounted.
        (Seen(None, UNIT, None, KEPT), REMOVE),
        (Seen(), []),
        # Somebody else's.
        (Seen(ENTRY, None), []),
    ],
)
def test_removal(seen: Seen, expected: list[str]) -> None:
    assert [step.what for step in make_removal(MOUNT, seen).steps] == expected


def test_what_pods_use_is_not_unmounted() -> None:
    with pytest.raises(TrainyardError, match="must be unmounted, but is in use by python"):
        make_removal(MOUNT, dataclasses.replace(MOUNTED, users=["python (pid 3)"]))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Seen(inside=["a", "b", "c", "d", "e"]), "holds other files, which the mount would hide: a, b, c, and 2 more"),
        (Seen(None, UNIT, RETRY, KEPT, inside=["a"]), "holds other files"),
        (Seen(properties={"LoadState": "masked"}), "The unit srv-files.mount is masked"),
        (Seen(others=["/srv/before"]), "are mounted at /srv/before, too, by a unit of trainyard"),
        # By hand, over ours or in its place.
        (
            dataclasses.replace(MOUNTED, entry=dataclasses.replace(ENTRY, source="10.1.0.6:/export")),
            r"10.1.0.6:/export \(nfs4\) is mounted at /srv/files already",
        ),
        (
            Seen(ENTRY, properties={"FragmentPath": "/run/systemd/generator/srv-files.mount"}),
            r"is mounted at /srv/files already by /run/systemd/generator/srv-files.mount",
        ),
        (
            dataclasses.replace(MOUNTED, older=True, users=["python (pid 3)"]),
            r"must be remounted, but is in use by python \(pid 3\)",
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


def test_a_mount_whose_server_is_gone_can_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By programs that note how they are called, and a question that fails."""
    for name, text in (("stat", "exit 1"), ("systemctl", ":"), ("umount", f'echo "$@" > {tmp_path}/asked')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(mounts, "users", lambda entry: [])
    mount = dataclasses.replace(MOUNT, path="/proc")
    seen = observe(mount, removal=True)
    assert seen.entry and not seen.answers
    plan = make_removal(mount, dataclasses.replace(seen, unit=UNIT))
    plan.steps[0].act()
    assert "--force --lazy /proc" in (tmp_path / "asked").read_text(encoding="utf-8")


def test_the_verdict_finds_shared_files_that_are_not_mounted(tmp_path: Path) -> None:
    """On this machine's own /proc, which is a mount for certain."""
    assert service_probe.probe_mount("/proc", 10) == {"ok": True, "path": "/proc", "error": ""}
    found = service_probe.probe_mount(str(tmp_path), 10)
    assert found["ok"] is False and found["error"] == f"nothing is mounted at {tmp_path}"


def test_it_is_found_how_a_mount_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine's own /proc, which is a mount for certain; systemd is a program that says what it is told."""
    (tmp_path / "systemctl").write_text(
        "#!/bin/sh\necho UnitFileState=enabled\necho ActiveEnterTimestampMonotonic=0\n", encoding="utf-8"
    )
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(mounts, "users", lambda entry: [])
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
