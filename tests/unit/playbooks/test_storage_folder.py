"""The role storage on a folder whose server is gone: the host is refused in time."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.playbooks.runs import ROOT, copy, play

# Several seconds for a start of Ansible.
pytestmark = pytest.mark.slow

PLAY = """
- hosts: cluster
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: storage}
"""


def test_a_folder_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody writes into the pipe that lies where the mark is, so who reads it waits for ever."""
    checkout = copy(tmp_path)
    (checkout / "roles").symlink_to(ROOT / "roles")
    (checkout / "playbooks" / "folder.yml").write_text(PLAY, encoding="utf-8")
    shared, folder = tmp_path / "shared", tmp_path / "run"
    shared.mkdir()
    folder.mkdir()
    mark = shared / ".trainyard"
    os.mkfifo(mark)
    values = {
        "storage_backend": "shared_path",
        "storage_path": str(shared),
        "storage_owner": os.getuid(),
        "storage_timeout": 15,
    }
    try:
        status, _, output = play(checkout, folder, "playbooks/folder.yml", "-e", json.dumps(values))
    finally:
        with suppress(OSError):  # No reader is left, or else each ends now.
            os.close(os.open(mark, os.O_WRONLY | os.O_NONBLOCK))
    assert status != 0 and "Timed out after 15 second(s)" in output, output
