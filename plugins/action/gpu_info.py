"""Send NVIDIA's Python binding of its management library with the module `gpu_info`.

The binding is one file without dependencies. No supported distribution has it in its main archive, and a host should
not need a Python environment for this module. So the controller's environment provides it, pinned by hash.
"""

from __future__ import annotations

import importlib.util

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Sends one additional file, which Ansible removes with its folder of temporary files."""

    TRANSFERS_FILES = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        found = importlib.util.find_spec("pynvml")
        if found is None or not found.origin:
            raise AnsibleActionFail("gpu_info: the controller's environment lacks nvidia-ml-py; run `make env`.")
        if not self._connection._shell.tmpdir:
            self._make_tmp_path()
        remote = self._connection._shell.join_path(self._connection._shell.tmpdir, "pynvml.py")
        self._transfer_file(found.origin, remote)
        self._fixup_perms2((self._connection._shell.tmpdir, remote), execute=False)
        arguments = {**self._task.args, "binding": remote}
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        return result
