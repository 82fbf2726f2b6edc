"""Credentials of a service: what is written, for whom, and that no text shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainyard.controller.credentials import Credentials, can_encrypt, make_plan
from trainyard.core.errors import CommandError

SECRET = "canary-5d1f"


def crypt(verb: str, name: str, text: str) -> str:
    """As systemd-creds: every encryption gives another text, and only the same name decrypts it."""
    if verb == "encrypt":
        crypt.count += 1  # type: ignore[attr-defined]
        return json.dumps([name, text[::-1], crypt.count])  # type: ignore[attr-defined]
    try:
        named, reversed_text, _ = json.loads(text)
    except ValueError as error:
        raise CommandError("no credential") from error
    if named != name:
        raise CommandError("another name")
    return str(reversed_text[::-1])


crypt.count = 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("encrypts", [True, False])
def test_written_left_alone_changed_and_removed(tmp_path: Path, encrypts: bool) -> None:
    wanted = Credentials(tmp_path / "kept", {"ssh_key": SECRET, "vault": "x"}, encrypts)
    plan = make_plan(wanted, crypt)
    assert [step.what for step in plan.steps] == ["Write the credential ssh_key", "Write the credential vault"]
    plan.execute()
    assert SECRET not in json.dumps(plan.diff())
    again = make_plan(wanted, crypt)
    assert again.steps == []
    paths = sorted(wanted.folder.iterdir())
    assert [path.name for path in paths] == (
        ["ssh_key.encrypted", "vault.encrypted"] if encrypts else ["ssh_key", "vault"]
    )
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o600}
    assert wanted.folder.stat().st_mode & 0o777 == 0o700
    assert any(SECRET in path.read_text(encoding="utf-8") for path in paths) is not encrypts

    paths[0].chmod(0o644)
    changed = Credentials(wanted.folder, {"ssh_key": SECRET, "other": "y"}, encrypts)
    plan = make_plan(changed, crypt)
    assert plan.before == {paths[0].name: "readable by others", paths[1].name: "not wanted"}
    plan.execute()
    assert make_plan(changed, crypt).steps == []
    make_plan(Credentials(wanted.folder, {}, encrypts), crypt).execute()
    assert list(wanted.folder.iterdir()) == []


def test_a_host_that_can_encrypt_now_keeps_nothing_plain(tmp_path: Path) -> None:
    make_plan(Credentials(tmp_path / "kept", {"ssh_key": SECRET}, False), crypt).execute()
    make_plan(Credentials(tmp_path / "kept", {"ssh_key": SECRET}, True), crypt).execute()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["ssh_key.encrypted"]


def test_what_was_encrypted_elsewhere_is_written_again(tmp_path: Path) -> None:
    wanted = Credentials(tmp_path, {"a": "x"}, True)
    wanted.path("a").write_text("from another host", encoding="utf-8")
    wanted.path("a").chmod(0o600)
    plan = make_plan(wanted, crypt)
    assert plan.before == {"a.encrypted": "encrypted for another host"}
    plan.execute()
    assert make_plan(wanted, crypt).steps == []


def test_whether_a_host_can_encrypt() -> None:
    def refuses(verb: str, name: str, text: str) -> str:
        raise CommandError("no key")

    assert can_encrypt(crypt)
    assert not can_encrypt(refuses)
    assert not can_encrypt(lambda verb, name, text: "other")
