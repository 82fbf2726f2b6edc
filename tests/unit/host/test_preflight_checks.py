"""The table of checks: each refusal has cause and remedy, and all reasons of a host appear at once."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.host.preflight_checks import CHECKS, Reason, reason, refuse

SOURCES = [
    *Path("src/trainyard/host").glob("*.py"),
    Path("src/trainyard/site/cni_folder.py"),
    Path("src/trainyard/site/ports.py"),
    *Path("library").glob("*.py"),
    *Path("roles").glob("*/tasks/*.yml"),
    *Path("playbooks").rglob("*.yml"),
]
USE = re.compile(r"""reason\(\s*"(\w+)"|code: (\w+)|'(\w+)' \| host_reason|'(gpu_\w+)'""")


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("code", CHECKS)
def test_each_check_has_a_cause_and_a_remedy(code: str) -> None:
    check = CHECKS[code]
    values = dict.fromkeys(names(check.cause) | names(check.remedy), "value")
    found = reason(code, **values)
    assert not found.cause.endswith(".") and found.remedy.endswith(".")
    assert check.about[0].isupper() and not check.about.endswith(".")
    assert str(found) == f"{found.cause}. {found.remedy}"


def test_the_table_has_the_checks_that_are_used_and_no_others(root: Path) -> None:
    used = {
        name for path in SOURCES for found in USE.findall((root / path).read_text("utf-8")) for name in found if name
    }
    assert used & CHECKS.keys() == CHECKS.keys()


def test_a_value_that_is_not_given_is_a_defect() -> None:
    with pytest.raises(KeyError):
        reason("memory", found=1)
    with pytest.raises(KeyError):
        reason("unknown")


def test_all_reasons_appear_at_once_and_control_no_terminal() -> None:
    found = [reason("root"), reason("port", program="a\x1b[2J\nfatal: [x]", process=1, port=2, owner="kubelet")]
    with pytest.raises(TrainyardError, match=r"(?s)^The host w1 cannot be a node:\n- the tasks.*\n- a") as error:
        refuse("w1", found)
    assert "\x1b" not in str(error.value) and "\nfatal" not in str(error.value)
    assert [each["code"] for each in error.value.facts["reasons"]] == ["root", "port"]
    assert [Reason(**each) for each in error.value.facts["reasons"]] == found
    refuse("w1", [])
