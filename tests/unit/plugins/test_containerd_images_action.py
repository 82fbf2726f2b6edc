"""Images on their way to a node: a folder of their own, outside the home of the login user, and removed in any case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail

from plugins.action import containerd_images
from plugins.action.containerd_images import ActionModule

FOLDER = "/var/tmp/trainyard-images.aB3dEf7h"
IMAGE = {"reference": "registry.internal/trainyard/x:1", "layout": "/store/x"}


class Node(ActionModule):
    """An action whose node answers as the test wants."""

    def __init__(self, printed: str = FOLDER, fails: bool = False) -> None:
        self.printed, self.fails = printed, fails
        self.commands: list[str] = []
        self.sent: list[str] = []
        self._connection = SimpleNamespace(_shell=SimpleNamespace(join_path=lambda *parts: "/".join(parts)))
        self._task = SimpleNamespace(args={"images": [IMAGE]}, check_mode=False)

    def _low_level_execute_command(self, command: str, sudoable: bool) -> dict[str, Any]:
        assert not sudoable
        self.commands.append(command)
        return {"rc": 0, "stdout": f"{self.printed}\n", "stderr": "no space\x1b[2J"}

    def _transfer_file(self, local: str, remote: str) -> None:
        self.sent.append(remote)

    def _fixup_perms2(self, paths: tuple[str, ...], execute: bool) -> None:
        assert paths[0] == FOLDER

    def _module(self, images: list[dict[str, Any]], task_vars: Any, *, check: bool) -> dict[str, Any]:
        if check:
            return {"changed": True, "missing": [IMAGE["reference"]]}
        if self.fails:
            raise AnsibleActionFail("ctr failed")
        return {"changed": True, "images": images}


@pytest.fixture(autouse=True)
def _no_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containerd_images.ActionBase, "run", lambda self, tmp, task_vars: {})
    monkeypatch.setattr(containerd_images, "_packed", lambda image, archive: archive)


def test_images_travel_through_a_folder_of_their_own() -> None:
    node = Node()
    result = node.run()
    assert node.sent == [f"{FOLDER}/1.tar"] == [result["images"][0]["archive"]]
    assert node.commands == [containerd_images.CREATE, f"rm -rf {FOLDER}"]
    assert "TMPDIR=/var/tmp" in node.commands[0]


def test_the_folder_is_removed_after_a_failure() -> None:
    node = Node(fails=True)
    with pytest.raises(AnsibleActionFail, match="ctr failed"):
        node.run()
    assert node.commands[-1] == f"rm -rf {FOLDER}"


@pytest.mark.parametrize(
    "printed", ["", "/", "/etc", f"{FOLDER}; rm -rf /", f"{FOLDER}/..", "/x/$(id)/trainyard-images.aaaaaaaa"]
)
def test_another_answer_is_no_folder(printed: str) -> None:
    node = Node(printed)
    with pytest.raises(AnsibleActionFail, match=r"^No folder can be created in /var/tmp: no space$"):
        node.run()
    assert len(node.commands) == 1
