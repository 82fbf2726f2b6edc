"""Takes the locks of a site for this run of ansible-playbook, or refuses with who has them.

There is no module of this name: nothing of it happens on a host. In check mode the machine's lock alone is taken.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

from ansible import context
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from trainyard.core.errors import TrainyardError
from trainyard.site_lock import keeper, machine
from trainyard.site_lock.holder import start_of

RUN_ID = "TRAINYARD_RUN_ID"
"""In the environment of a playbook that another run of ours has started: that run holds the locks for it."""


class ActionModule(ActionBase):
    """Fails where another run has a lock; a second call in the same run finds that it has them already.

    `site` is the folder of the site (site_lock/machine.py), empty for its inventory; `kubeconfig` leads to its cluster.
    """

    _requires_connection = False
    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("site", "kubeconfig"))

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            argument_spec={
                "site": {"type": "path", "default": ""},
                "kubeconfig": {"type": "path", "default": ""},
            },
        )
        # A task runs in a child of ansible-playbook.
        parent = multiprocessing.parent_process()
        run = (parent.pid if parent else None) or os.getpid()
        site = arguments["site"] or str((context.CLIARGS.get("inventory") or ["."])[0])
        known = machine.holder(site)
        if known and (known.pid == run or known.run_id == os.environ.get(RUN_ID)):
            return {**result, "changed": False, "msg": f"Held by {known}."}
        try:
            holder, pid = keeper.start(
                keeper.Wanted(
                    site=site,
                    verb=_verb(),
                    run_id=os.environ.get(RUN_ID) or f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{run}",
                    pid=run,
                    kubeconfig="" if self._task.check_mode else arguments["kubeconfig"],
                )
            )
        except TrainyardError as error:
            return {**result, "failed": True, "msg": f"Nothing was touched. {error}"}
        for note in holder.notes:
            Display().display(f"    {note}")
        # For the callback of the same name, which gives them back at the end.
        said = {"keeper": pid, "keeper_started": start_of(pid), "lock": str(machine.path_of(site))}
        return {**result, **said, "changed": False, "msg": f"Held by {holder}."}


def _verb() -> str:
    """The playbook of the call, such as `site` or `reset`."""
    named = context.CLIARGS.get("args") or ("ansible",)
    return Path(str(named[0])).stem
