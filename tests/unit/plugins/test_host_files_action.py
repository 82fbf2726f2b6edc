"""Paths that `host_files` takes from the controller: a name in them may come from a fact."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail

from plugins.action.host_files import ActionModule


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/etc/containerd/certs.d/docker.io/hosts.toml", False),
        ("/etc/containerd/certs.d/../../cron.d/x/hosts.toml", True),
        ("/etc/apt/sources.list.d/a\nb.sources", True),
        ("/etc/apt/sources.list.d//x", True),
        ("etc/hosts", True),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path: str, refused: bool) -> None:
    action = ActionModule.__new__(ActionModule)
    if refused:
        with pytest.raises(AnsibleActionFail, match="not a plain absolute path"):
            action._refuse_path(path)
    else:
        action._refuse_path(path)
