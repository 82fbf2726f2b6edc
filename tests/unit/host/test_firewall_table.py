"""The site's own table: it is kept only after a new connection, and each interruption leaves the old one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trainyard.core.errors import CommandError, TrainyardError
from trainyard.core.plan import Plan
from trainyard.host import firewall_table, nftables


class Kernel:
    """Loads a table as one JSON object with its text, and records the programs that it runs."""

    def __init__(self) -> None:
        self.loaded = ""
        self.calls: list[str] = []
        self.broken = ""

    def __call__(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        words = " ".join(argv)
        if argv[0] == "unshare":
            return self._listed(Path(argv[-1]).read_text())
        if words == "nft --json list table inet trainyard":
            if not self.loaded:
                return subprocess.CompletedProcess(argv, 1, "", "Error: No such file or directory")
            return self._listed(self.loaded)
        name = " ".join(argv[:2])
        self.calls.append(name)
        if name == self.broken:
            raise CommandError("killed")
        if name == "nft --file":
            self.loaded = Path(argv[2]).read_text()
        if name == "nft delete":
            self.loaded = ""
        return subprocess.CompletedProcess(argv, 0, "", "")

    def _listed(self, text: str) -> subprocess.CompletedProcess[str]:
        rows = [{"metainfo": {"version": "1"}}, {"rule": {"handle": len(self.calls), "expr": text}}]
        return subprocess.CompletedProcess([], 0, json.dumps({"nftables": rows}), "")


class Host:
    """A host with a kernel and the two files."""

    def __init__(self, folder: Path, kernel: Kernel) -> None:
        self.kernel, self.kept, self.candidate = kernel, folder / "etc/firewall.nft", folder / "candidate"

    def arm(self, text: str) -> Plan:
        return firewall_table.plan_armed(text, 60, str(self.kept), str(self.candidate))

    def confirm(self) -> Plan:
        return firewall_table.plan_confirmed(str(self.kept), str(self.candidate))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    kernel = Kernel()
    monkeypatch.setattr(firewall_table, "run", kernel)
    return Host(tmp_path, kernel)


def test_a_table_is_kept_after_its_confirmation_alone(host: Host) -> None:
    host.arm("new").execute()
    assert host.kernel.loaded == "new" and not host.kept.exists()
    # The timer runs before the table is loaded.
    assert host.kernel.calls[1:] == [f"systemd-run --unit={firewall_table.ROLLBACK}", "nft --file"]
    host.confirm().execute()
    assert host.kept.read_text() == "new" and not host.candidate.exists()
    assert host.kept.stat().st_mode & 0o777 == 0o600
    assert not host.arm("new").changed and not host.confirm().changed


def test_a_table_that_was_changed_by_hand_or_is_not_kept_is_loaded_again(host: Host) -> None:
    host.arm("new").execute()
    assert [change.before for change in host.arm("new").changes] == ["not loaded at boot"]
    host.confirm().execute()
    host.kernel.loaded = "by hand"
    plan = host.arm("new")
    assert [change.before for change in plan.changes] == ["other rules"]
    assert "by hand" in str(plan.diff()["before"]) and "new" in str(plan.diff()["after"])
    plan.execute()
    assert host.kernel.loaded == "new" and host.confirm().changed


def test_a_confirmation_that_comes_too_late_keeps_nothing(host: Host) -> None:
    host.arm("old").execute()
    host.confirm().execute()
    host.arm("new").execute()
    host.kernel.loaded = "old"
    with pytest.raises(TrainyardError, match="not confirmed in time") as error:
        host.confirm().execute()
    assert "firewall_admin_networks" in error.value.remedy
    assert host.kept.read_text() == "old" and not host.candidate.exists()


@pytest.mark.parametrize(
    ("seconds", "name", "is_older"), [(100, "sshd-session", True), (0, "sshd", False), (100, "sudo", False)]
)
def test_the_old_connection_confirms_nothing(tmp_path: Path, seconds: float, name: str, is_older: bool) -> None:
    armed = 5000.0
    started = int((armed + 5 - seconds) * os.sysconf("SC_CLK_TCK"))
    for process, of, parent in ((os.getpid(), "python3 (x) y", 77), (77, name, 1)):
        (tmp_path / str(process)).mkdir()
        fields = " ".join(["S", str(parent), *["0"] * 17, str(started), "0"])
        (tmp_path / str(process) / "stat").write_text(f"{process} ({of}) {fields}\n")
    candidate = tmp_path / "candidate"
    (tmp_path / "candidate.time").write_text(str(armed))
    assert firewall_table._is_older(str(candidate), tmp_path) is is_older


def test_a_run_that_is_killed_before_the_table_leaves_the_timer(host: Host) -> None:
    host.kernel.broken = "nft --file"
    with pytest.raises(CommandError):
        host.arm("new").execute()
    assert host.kernel.loaded == "" and not host.kept.exists()
    host.kernel.broken = ""
    assert host.arm("new").changed


def test_a_full_disk_leaves_the_timer(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.arm("new").execute()
    host.kernel.calls.clear()
    plan = host.confirm()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(TrainyardError, match="cannot be written: No space left"):
        plan.execute()
    assert "systemctl stop" not in host.kernel.calls


def test_check_mode_plans_without_nft(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    plan = firewall_table.plan_armed("new", 60, str(host.kept), str(host.candidate), can_be_missing=True)
    assert plan.changed and host.kernel.calls == []


def test_a_login_of_the_operator_is_no_connection_of_the_run(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firewall_table, "_is_older", lambda _: True)
    host.arm("new").execute()
    with pytest.raises(TrainyardError, match="older than the table"):
        host.confirm()
    assert firewall_table.plan_confirmed(str(host.kept), str(host.candidate), over_ssh=False).changed


def test_check_mode_changes_nothing(host: Host) -> None:
    assert host.arm("new").changed
    assert host.kernel.calls == [] and not host.kept.exists() and not host.candidate.exists()


def test_the_table_is_removed(host: Host) -> None:
    host.arm("new").execute()
    host.confirm().execute()
    firewall_table.plan_absent(str(host.kept)).execute()
    assert host.kernel.loaded == "" and not host.kept.exists()
    assert not firewall_table.plan_absent(str(host.kept)).changed


def test_firewalls_beside_it_are_found() -> None:
    def chain(family: str, table: str, policy: str, hook: str = "input") -> dict[str, Any]:
        return {"chain": {"family": family, "table": table, "name": "input", "hook": hook, "policy": policy}}

    def rule(table: str, *expressions: Any) -> dict[str, Any]:
        return {"rule": {"family": "inet", "table": table, "chain": "input", "expr": list(expressions)}}

    found = [
        chain("inet", "trainyard", "drop"),
        chain("inet", "filter", "drop"),
        chain("ip", "filter", "drop"),
        chain("inet", "open", "accept"),
        chain("inet", "forward", "drop", "forward"),
        chain("inet", "firewalld", "accept"),
        rule("open", {"match": {}}, {"drop": None}),
        rule("firewalld", {"reject": {}}),
    ]
    assert [table for _, table, _ in nftables.policies(found)] == ["filter", "filter", "firewalld"]
