"""What bad input of scheduled reprovisioning gets, and that each refusal says what the schedule does until then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainyard.site.reprovision_rules import REPROVISION_RULES
from trainyard.site.site_model import Setting, Site

NIGHT = {"days": ["mon"], "from": "01:00", "to": "05:00", "zone": "Europe/Berlin"}
GROUPS = {"controllers": ["ctl1"], "cluster": ["cp1", "w1"], "control_plane": ["cp1"], "workers": ["w1"]}
ADDRESSES = {"cp1": "10.1.0.10", "w1": "10.1.0.21"}
SIGNER = "alice@example.org ssh-ed25519 AAAAC3Nza"


def refusals(name: str = "", value: Any = None, *, groups: Any = None, addresses: Any = None) -> list[str]:
    settings = [Setting(name, value, ("ctl1",))] if name else []
    site = Site(groups=groups or GROUPS, addresses=addresses or ADDRESSES, settings=settings)
    return [str(problem) for rule in REPROVISION_RULES for problem in rule(site)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", None),
        ("reprovision_schedule", "Mon..Fri 03:10"),
        ("reprovision_delay", "1hr 30 seconds"),
        ("reprovision_delay", 900),
        ("reprovision_windows", [NIGHT, {**NIGHT, "from": "05:00", "to": "06:00"}]),
        ("reprovision_canary", ""),
        ("reprovision_canary", "w1"),
        ("reprovision_max_hosts", "100%"),
        ("reprovision_batch", "3"),
        ("reprovision_max_items", 1),
        ("reprovision_hooks", [{"name": "mail", "command": ["/usr/bin/env", "true"]}]),
        ("reprovision_hooks", [{"name": "chat", "webhook": "https://chat.example/x"}]),
        ("reprovision_vault_password_file", ""),
        # The keys of a lab are made by its first run.
        ("reprovision_ssh_key_file", "/nonexistent/key"),
        ("reprovision_allowed_signers", ""),
        ("reprovision_allowed_signers", f"# people\n{SIGNER}\n"),
    ],
)
def test_what_can_be(name: str, value: Any) -> None:
    assert refusals(name, value) == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("reprovision_schedule", "every night", "not a calendar expression of systemd"),
        ("reprovision_schedule", "0 3 * * *", "not a calendar expression of systemd"),
        ("reprovision_delay", "soon", "it is not a time span"),
        ("reprovision_delay", "infinity", "it is not a time span"),
        ("reprovision_windows", [{**NIGHT, "to": "01:00"}], "never opens"),
        ("reprovision_windows", [{**NIGHT, "days": []}], "days is []"),
        ("reprovision_windows", [{**NIGHT, "zone": "Europe/Nowhere"}], "zone is Europe/Nowhere"),
        ("reprovision_windows", ["03:00"], "reprovision_windows[0]"),
        ("reprovision_windows", [NIGHT, {**NIGHT, "from": "04:00", "to": "06:00"}], "it overlaps with the window [0]"),
        ("reprovision_canary", "m1", "not a host of the cluster"),
        ("reprovision_max_hosts", "0%", "from 1% to 100%"),
        ("reprovision_max_hosts", "120%", "from 1% to 100%"),
        ("reprovision_max_unreachable", "none", "from 1% to 100%"),
        ("reprovision_batch", 0, "from 1% to 100%"),
        ("reprovision_max_items", 0, "at least 1"),
        ("reprovision_approval_hours", -1, "at least 1"),
        ("reprovision_hooks", [{"name": "a", "command": ["/nonexistent/mail"]}], "does not exist, or is not"),
        ("reprovision_hooks", [{"name": "a", "command": [__file__]}], "does not exist, or is not executable"),
        ("reprovision_hooks", [{"name": "a", "command": ["mail", "root"]}], "the absolute path of a program"),
        ("reprovision_hooks", [{"name": "a", "command": "/usr/bin/mail root"}], "the absolute path of a program"),
        ("reprovision_hooks", [{"name": "a", "webhook": "http://chat.example/token"}], "without TLS others"),
        ("reprovision_hooks", [{"name": "a", "webhook": "https://"}], "without TLS others"),
        ("reprovision_hooks", [{"name": "a"}], "either a command or a webhook"),
        ("reprovision_ssh_key_file", f"{__file__}/key", "it cannot be read"),
        ("reprovision_ssh_key_file", "/etc", "not a file"),
        ("reprovision_vault_password_file", __file__, "others may read it (mode 06"),
        ("reprovision_allowed_signers", "alice", "each line needs a name"),
        ("reprovision_allowed_signers", "# nobody", "each line needs a name"),
    ],
)
def test_what_is_refused(name: str, value: Any, said: str) -> None:
    (refusal,) = refusals(name, value)
    assert refusal.startswith(f"variable {name}")
    assert said in refusal
    assert refusal.endswith("Until then the schedule does nothing.")
    assert "token" not in refusal


def test_a_credential_of_its_owner_alone_is_taken(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret", encoding="utf-8")
    key.chmod(0o600)
    assert refusals("reprovision_ssh_key_file", str(key)) == []
    key.chmod(0o640)
    (refusal,) = refusals("reprovision_ssh_key_file", str(key))
    assert f"Run chmod 600 {key}." in refusal
    assert "secret" not in refusal


def test_programs_of_another_machine_are_judged_there() -> None:
    hook = [{"name": "mail", "command": ["/nonexistent/mail"]}]
    assert refusals("reprovision_hooks", hook, addresses={**ADDRESSES, "ctl1": "10.1.0.5"}) == []
