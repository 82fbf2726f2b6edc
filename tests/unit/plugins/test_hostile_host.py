"""A host that answers with whatever its root likes neither speaks for another host nor holds the others up."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from ansible.plugins.callback import CallbackBase

from plugins.callback.host_answers import MOST_LINES, bounded, short
from plugins.callback.plain_output import LONGEST, plain
from tests.bench import red_node_python as hostile
from trainyard.drift import playbook_runner
from trainyard.drift.find import Found, find
from trainyard.drift.masking import Masker

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.ping:
    - ansible.builtin.file: {path: "{{ folder }}/there", state: directory}
    - ansible.builtin.setup: {gather_subset: ["!all"]}
      register: found
    - ansible.builtin.debug: {msg: "{{ ansible_facts.red | default('none') }}"}
"""
SSH = '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n'
"""In the place of ssh: the host is this machine."""
GUARDS = "plain_output,host_answers"


def installed(folder: Path, mode: str, victim: str) -> Path:
    """The hostile Python, in a folder of its own."""
    folder.mkdir()
    (folder / "mode").write_text(f"{mode} {victim}")
    text = Path(hostile.__file__).read_text(encoding="utf-8")
    (folder / "real").symlink_to(sys.executable)
    (folder / "python").write_text(f"#!{folder / 'real'}\n{text}")
    (folder / "python").chmod(0o755)
    return folder / "python"


def played(folder: Path, guards: str, *modes: str) -> tuple[playbook_runner.Played, list[Any]]:
    """A run over the honest host `cp1` and a host for each mode; and all that ansible-runner took for events."""
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    lines = [f"{name} ansible_python_interpreter={installed(folder / name, name, 'cp1')}" for name in modes]
    # Neither the kernel nor an INI inventory takes a path with a space, which the folder of this project may have.
    (folder / "honest").symlink_to(sys.executable)
    listed = [f"cp1 ansible_python_interpreter={folder / 'honest'}", *lines, "[all:vars]"]
    listed += [f"ansible_ssh_executable={folder}/ssh", "ansible_ssh_args="]
    (folder / "hosts.ini").write_text("\n".join(listed) + "\n")
    (folder / "play.yml").write_text(PLAY)
    seen: list[Any] = []
    done = playbook_runner.play(
        folder / "play.yml", inventory=[str(folder / "hosts.ini")], mode=playbook_runner.CHECK, masker=Masker(),
        timeout=200,
        extra={"folder": str(folder)}, environment={"ANSIBLE_CALLBACKS_ENABLED": guards}, raw=seen.append,
    )  # fmt: skip
    return done, seen


def others(found: Found) -> list[tuple[str, str]]:
    return [(item.host, item.subject) for item in found.items if item.host not in hostile.MODES]


@pytest.mark.slow
def test_a_hostile_host_speaks_for_itself_alone(tmp_path: Path) -> None:
    done, seen = played(tmp_path, GUARDS, "flood", "forged", "warned", "failed", "slow")
    began = time.monotonic()
    found = find(done.events)
    assert time.monotonic() - began < 20
    assert others(found) == [("cp1", str(tmp_path / "there"))]
    assert (found.unreached, found.refused, found.ended) == (["flood"], ["failed"], True)
    assert not [each for each in seen if (each.get("event_data") or {}).get("task") == hostile.TASK]
    assert {item.host for item in found.items} >= {"forged", "warned", "slow"}
    said = gzip.decompress(done.kept["output.txt.gz"]).decode()
    assert "\x1b" not in said and "The difference is not shown" in said and "the limit is 8 MiB" in said
    assert not Path("/tmp/red-node-was-here").exists()


@pytest.mark.slow
def test_without_the_cleaning_the_number_of_the_run_holds_and_without_both_an_event_is_forged(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    done, seen = played(folders[0], "host_answers", "forged")
    assert [each for each in seen if (each.get("event_data") or {}).get("task") == hostile.TASK]
    assert others(find(done.events)) == [("cp1", str(folders[0] / "there"))]
    with mock.patch.object(playbook_runner.secrets, "randbits", return_value=hostile.JOB):
        done, _ = played(folders[1], "host_answers", "forged")
    assert ("cp1", "/etc/red") in others(find(done.events))


def test_text_is_shown_without_commands_and_bounded() -> None:
    assert plain("a\x1b[2J\x1b]52;c;eA==\x07b\r\n\tc") == "ab\n\tc"
    assert plain("x" * (LONGEST + 1)).startswith("x" * LONGEST) and len(plain("x" * 2 * LONGEST)) < LONGEST + 10
    with mock.patch("ansible.utils.color.ANSIBLE_COLOR", True):
        assert plain("\x1b[0;32m+a\x1b[0m\x1b[8mhidden") == "\x1b[0;32m+a\x1b[0mhidden"
    assert plain("\x1b[0;32m+a") == "+a"


def test_a_command_that_says_too_much_is_an_error_of_its_host() -> None:
    answer = bounded(lambda _connection, size: (0, b"x" * size, b"y"))
    assert answer(None, 10) == (0, b"x" * 10, b"y")
    with pytest.raises(Exception, match="the limit is 8 MiB"):
        answer(None, 2**23)


@pytest.mark.parametrize(
    "diff",
    [
        {"before": "x\n" * MOST_LINES, "after": "y\n"},
        {"before": {"a": ["x"] * (MOST_LINES + 1)}, "after": {}},
        {"before": 7, "after": ""},
        {"before": ["x"], "after": ""},
        "text",
        None,
    ],
)
def test_a_difference_that_is_too_long_or_has_no_form_is_not_shown(diff: Any) -> None:
    shown = short(diff)
    assert "is not shown" in shown["prepared"] and CallbackBase()._get_diff(shown) == shown["prepared"]


def test_a_difference_of_a_module_is_shown() -> None:
    for diff in ({"before": "a\n", "after": "b\n"}, {"prepared": "a"}, {"before": {"a": None}, "after": {"a": [1]}}):
        assert short(diff) is diff


def test_the_real_ansible_has_the_guards() -> None:
    found = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-config")), "dump", "--only-changed"],
        capture_output=True, text=True, check=True, timeout=120, cwd=Path(__file__).resolve().parents[3],
    ).stdout  # fmt: skip
    (line,) = [each for each in found.splitlines() if each.startswith("CALLBACKS_ENABLED")]
    assert "'plain_output', 'host_answers'" in line
