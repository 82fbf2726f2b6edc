"""Send missing images to a node, and import them with the module of the same name.

An archive is packed once in a run, for the first host that needs it, in Ansible's folder of temporary files. Ansible
removes this folder at the end of the run.
"""

from __future__ import annotations

import fcntl
import os
import subprocess

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

PACK_TIMEOUT = 900
"""Seconds to pack one image: 300 MB took 4 on the machine of docs/benchmarks.md."""


class ActionModule(ActionBase):
    """Queries the node first, so that a node with all images costs only one call of the module."""

    TRANSFERS_FILES = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        images = self._task.args.get("images") or []
        found = self._module(images, task_vars, check=True)
        if found.get("failed") or self._task.check_mode or not found.get("changed"):
            result.update(found)
            return result
        ready = [self._delivered(image) if image["reference"] in found["missing"] else image for image in images]
        result.update(self._module(ready, task_vars, check=False))
        return result

    def _module(self, images, task_vars, *, check):
        before, self._task.check_mode = self._task.check_mode, check
        try:
            return self._execute_module(module_args={**self._task.args, "images": images}, task_vars=task_vars)
        finally:
            self._task.check_mode = before

    def _delivered(self, image):
        """Send an image, and return it with the path of its archive on the node."""
        if not self._connection._shell.tmpdir:
            self._make_tmp_path()
        name = f"{image['reference'].rpartition(':')[2]}.tar"
        remote = self._connection._shell.join_path(self._connection._shell.tmpdir, name)
        self._transfer_file(_packed(image, os.path.join(C.DEFAULT_LOCAL_TMP, name)), remote)
        self._fixup_perms2((self._connection._shell.tmpdir, remote), execute=False)
        return {**image, "archive": remote}


def _packed(image, archive):
    """Return the archive on the controller. Pack it unless another host's process has packed it."""
    with open(f"{archive}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(archive):
            source, target = f"oci:{image['layout']}", f"oci-archive:{archive}.part:{image['reference']}"
            argv = ["skopeo", "--insecure-policy", "copy", "--quiet", "--preserve-digests", source, target]
            try:
                subprocess.run(argv, check=True, timeout=PACK_TIMEOUT, capture_output=True, stdin=subprocess.DEVNULL)
            except (OSError, subprocess.SubprocessError) as error:
                said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
                raise AnsibleActionFail(f"{image['reference']} could not be packed: {said or error}") from error
            os.rename(f"{archive}.part", archive)
    return archive
