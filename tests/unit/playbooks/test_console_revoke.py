"""console_revoke.yml, called as users call it: what was not named and confirmed ends no login."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.playbooks.runs import copy, play

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy(tmp_path_factory.mktemp("checkout"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param("", "console_token is '', console_user '', console_confirm ''", id="nothing named"),
        pytest.param("-e console_user=alice", "console_confirm ''. Set console_token", id="unconfirmed"),
        pytest.param("-e console_user=alice -e console_confirm=bob", "console_confirm 'bob'", id="another confirmed"),
        pytest.param(
            "-e console_user=alice -e console_token=token-bob-x -e console_confirm=alice",
            "Set console_token",
            id="both named",
        ),
        pytest.param("-e console_user=alice -e console_confirm=alice --limit w1", "leaves out localhost", id="limit"),
    ],
)
def test_refusals(checkout: Path, tmp_path: Path, arguments: str, said: str) -> None:
    status, _, output = play(checkout, tmp_path, "playbooks/console_revoke.yml", *arguments.split())
    assert status != 0
    assert said in output
    assert "TASK [Find the logins]" not in output


def test_what_is_confirmed_is_looked_for(checkout: Path, tmp_path: Path) -> None:
    arguments = "-e console_user=alice -e console_confirm=alice"
    status, _, output = play(checkout, tmp_path, "playbooks/console_revoke.yml", *arguments.split())
    # The kubeconfig of these tests is none.
    assert status != 0 and "TASK [Find the logins]" in output
