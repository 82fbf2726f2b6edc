"""Take the locks of a site for this run of ansible-playbook, or fail with their holder.

There is no module of this name, as nothing runs on a host. In check mode only the machine's lock is taken.
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
from trainyard.site_lock import keeper, machine_lock
from trainyard.site_lock.holder import start_of

RUN_ID = "TRAINYARD_RUN_ID"
"""Environment variable: set if `trainyard reprovision` started the playbook. Its run holds the locks."""


class ActionModule(ActionBase):
    """Fails if another run has a lock. A second call in the same run finds the locks already held.

    `site` is the folder of the site (site_lock/machine_lock.py), empty for its inventory. `kubeconfig` is the file with
    the credentials of its cluster.
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
        # A task runs in a child process of ansible-playbook, which ends too early for the locks.
        parent = multiprocessing.parent_process()
        run = (parent.pid if parent else None) or os.getpid()
        site = arguments["site"] or str((context.CLIARGS.get("inventory") or ["."])[0])
        known = machine_lock.holder(site)
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
        # For the callback of the same name, which releases the locks at the end.
        said = {"keeper": pid, "keeper_started": start_of(pid), "lock": str(machine_lock.path_of(site))}
        return {**result, **said, "changed": False, "msg": f"Held by {holder}."}


def _verb() -> str:
    """Return the name of the called playbook, such as `site` or `reset`."""
    named = context.CLIARGS.get("args") or ("ansible",)
    return Path(str(named[0])).stem
