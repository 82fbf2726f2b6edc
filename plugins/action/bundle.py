"""Run the module of the same name, and show its progress lines while it works.

`training.py` and `training_stop.py` are links to this file, as Ansible finds an action plugin by the module's name.
"""

from __future__ import annotations

import os
import tempfile
import threading

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

POLL_SECONDS = 0.5


class ActionModule(ActionBase):
    """Passes `progress_file` to the module, and copies the lines of the file to the terminal.

    On another machine (`bundle_builder`) the file could not be read here, so there is none.
    """

    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        if self._connection.transport != "local":
            result.update(self._execute_module(task_vars=task_vars))
            return result
        descriptor, path = tempfile.mkstemp(prefix="trainyard-progress-")
        os.close(descriptor)
        ended = threading.Event()
        follower = threading.Thread(target=_follow, args=(path, ended), daemon=True)
        follower.start()
        try:
            result.update(
                self._execute_module(module_args={**self._task.args, "progress_file": path}, task_vars=task_vars)
            )
        finally:
            ended.set()
            follower.join()
            os.unlink(path)
        arguments = result.get("invocation", {}).get("module_args", {})
        arguments.pop("progress_file", None)
        for role in (arguments.get("training") or {}).get("roles") or []:
            # Values of an environment may be secret, so only the names are shown.
            role["env"] = dict.fromkeys(role.get("env") or {}, "(hidden)")
        return result


def _follow(path: str, ended: threading.Event) -> None:
    """Show whole lines as they arrive. Read the file once more after the module has ended."""
    display = Display()
    with open(path, encoding="utf-8") as stream:
        pending = ""
        while True:
            last = ended.wait(POLL_SECONDS)
            pending += stream.read()
            *lines, pending = pending.split("\n")
            for line in lines:
                display.display(f"    {line}")
            if last:
                return
