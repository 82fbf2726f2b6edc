"""host_files: a file with settings of the host's owner is refused, or replaced on request with a copy kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard.core.errors import CommandError, TrainyardError
from trainyard.host import ownership
from trainyard.host.config_files import File, HostFiles
from trainyard.host.ownership import MARKER, foreign_files

FOREIGN = '{"data-root": "/data/docker", "registry-mirrors": ["https://mine.example"]}\n'
LINES = [
    "{",
    '  "data-root":',
    '  "exec-opts":',
    '  "log-driver":',
    '  "log-opts":',
    '    "max-file":',
    '    "max-size":',
]
DAEMON = {
    "exec-opts": ["native.cgroupdriver=systemd"],
    "data-root": "/var/lib/docker",
    "log-driver": "json-file",
    "log-opts": {"max-size": "50m", "max-file": "3"},
}


def daemon(**more: object) -> str:
    """As the role docker writes it."""
    return json.dumps({**DAEMON, **more}, indent=2, sort_keys=True) + "\n"


@pytest.fixture(autouse=True)
def conffiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What dpkg knows: each line a path and the MD5 of what its package has brought."""
    rows: list[str] = []
    monkeypatch.setattr(ownership, "run", lambda *_, **__: SimpleNamespace(stdout="\n".join(rows)))
    return rows


def wanted(path: Path, content: str = daemon(), replace: bool = False) -> HostFiles:
    return HostFiles([File(str(path), content, ours=LINES)], replace=[str(path)] if replace else [])


@pytest.mark.parametrize(
    "text",
    [
        FOREIGN,
        "[plugins]\nroot = '/data/containerd'\n",
        # The same keys in another form are another writer's.
        daemon(**{"data-root": "/data/docker"}).replace("  ", "    "),
        json.dumps({**DAEMON, "data-root": "/data/docker"}, indent=2) + "\n",
    ],
)
def test_the_owners_file_is_refused_and_stays(text: str, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text(text)
    with pytest.raises(TrainyardError, match=r"daemon\.json holds settings .* base_replace_files"):
        wanted(path).plan()
    assert path.read_text() == text and len(list(tmp_path.iterdir())) == 1


def test_on_request_it_is_replaced_and_a_copy_stays(tmp_path: Path) -> None:
    path, older = tmp_path / "daemon.json", tmp_path / "daemon.json.before-trainyard"
    path.write_text(FOREIGN)
    older.write_text("older\n")
    path.chmod(0o600)
    plan = wanted(path, replace=True).plan()
    assert [step.what.split()[0] for step in plan.steps] == ["Keep", "Write"]
    plan.execute()
    copy = tmp_path / "daemon.json.2.before-trainyard"
    assert (path.read_text(), older.read_text(), copy.read_text()) == (daemon(), "older\n", FOREIGN)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not wanted(path, replace=True).plan().changed and not wanted(path).plan().changed


@pytest.mark.parametrize(
    "text",
    [
        # What earlier runs of this project have written, with other variables
        daemon(**{"data-root": "/mnt/docker"}),
        daemon(features={"cdi": True}, debug=True, **{"log-driver": "local"}),
        f"# {MARKER}\nold\n",
        # Nothing is lost.
        "", "{}\n", json.dumps(DAEMON),
    ],
)  # fmt: skip
def test_a_file_of_this_project_or_without_settings_is_replaced(text: str, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text(text)
    plan = wanted(path).plan()
    assert [step.what for step in plan.steps] == [f"Write {path}"]


def test_a_packages_own_file_is_nobodys_until_it_is_edited(tmp_path: Path, conffiles: list[str]) -> None:
    path, link = tmp_path / "config.toml", tmp_path / "link.toml"
    path.write_text("disabled_plugins = []\n")
    link.symlink_to(path)
    conffiles += [" /etc/other 0123", f" {path} {hashlib.md5(path.read_bytes()).hexdigest()} obsolete"]
    assert wanted(path).plan().changed and wanted(link).plan().changed
    assert foreign_files([str(path), str(link), str(tmp_path / "none")], []) == []
    path.write_text("disabled_plugins = []\nroot = '/data'\n")
    with pytest.raises(TrainyardError, match="holds settings"):
        wanted(path).plan()
    assert foreign_files([str(path)], []) == [str(path)]
    assert foreign_files([str(path)], [str(path)]) == []


def test_without_dpkg_nothing_is_a_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise CommandError("dpkg-query cannot be started.")

    monkeypatch.setattr(ownership, "run", missing)
    (tmp_path / "a.conf").write_text("mine\n")
    with pytest.raises(TrainyardError, match="holds settings"):
        wanted(tmp_path / "a.conf").plan()


def test_places_of_this_project_need_no_mark(tmp_path: Path) -> None:
    for name in ("trainyard-site.conf", "index.json"):
        (tmp_path / name).write_text("before\n")
    files = [
        File(str(tmp_path / "trainyard-site.conf"), "new\n"),
        File(str(tmp_path / "index.json"), "new\n", own=True),
    ]
    assert len(HostFiles(files).plan().steps) == 2


def test_all_files_in_the_way_are_named_at_once_and_none_is_written(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.conf", "b.conf", "new.conf")]
    for path in paths[:2]:
        path.write_text("mine\n")
    with pytest.raises(TrainyardError, match=r"a\.conf and .*b\.conf hold settings"):
        HostFiles([File(str(path), "wanted\n") for path in paths]).plan()
    assert not paths[2].exists()


def test_a_copy_lies_where_no_program_reads_it(tmp_path: Path) -> None:
    enabled, available = tmp_path / "sites-enabled", tmp_path / "sites-available"
    enabled.mkdir()
    available.mkdir()
    site = enabled / "default"
    site.write_text("server {}\n")
    file = File(str(site), f"# {MARKER}\n", beside=str(available / "default"))
    HostFiles([file], replace=[str(site)]).plan().execute()
    assert [path.name for path in enabled.iterdir()] == ["default"]
    assert (available / "default.before-trainyard").read_text() == "server {}\n"


def test_another_text_with_the_same_meaning_stays(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for text, changed in (("version = 3\n", False), ("version = 4\n", False), ("version = 2\n", True)):
        path.write_text(f"# {MARKER}\n{text}")
        path.chmod(0o644)
        file = File(str(path), f"# {MARKER}\nversion = 4\n", also=[f"# {MARKER}\nversion = 3\n"])
        assert HostFiles([file]).plan().changed == changed
