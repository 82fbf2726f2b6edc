"""Send missing images to a node, and import them with the module of the same name.

An archive is packed once in a run, for the first host that needs it, in Ansible's folder of temporary files. Ansible
removes this folder at the end of the run.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import subprocess

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from trainyard.core.untrusted import clean

CREATE = "umask 077 && TMPDIR=/var/tmp mktemp --directory --tmpdir trainyard-images.XXXXXXXX"
CREATED = re.compile(r"(?:/[\w.-]+)+/trainyard-images\.[A-Za-z0-9]{8}", re.ASCII)
"""A plain path: the node prints it, and it becomes part of a command there."""
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
        folder = self._create_folder()
        try:
            missing = found["missing"]
            ready = [self._delivered(image, folder) if image["reference"] in missing else image for image in images]
            result.update(self._module(ready, task_vars, check=False))
        finally:
            self._low_level_execute_command(f"rm -rf {shlex.quote(folder)}", sudoable=False)
        return result

    def _module(self, images, task_vars, *, check):
        before, self._task.check_mode = self._task.check_mode, check
        try:
            return self._execute_module(module_args={**self._task.args, "images": images}, task_vars=task_vars)
        finally:
            self._task.check_mode = before

    def _create_folder(self):
        """Create a folder for the archives on the node, as the login user, and return its path.

        Not in the home of that user, which may be small or on NFS: an image with CUDA has 5 GB.
        """
        created = self._low_level_execute_command(CREATE, sudoable=False)
        found = CREATED.fullmatch(created["stdout"].strip().rpartition("\n")[2])
        if created["rc"] or not found:
            raise AnsibleActionFail(
                f"No folder can be created in /var/tmp: {clean(created['stderr'] or created['stdout']).strip()}"
            )
        return found[0]

    def _delivered(self, image, folder):
        """Send an image, and return it with the path of its archive on the node."""
        name = f"{image['reference'].rpartition(':')[2]}.tar"
        remote = self._connection._shell.join_path(folder, name)
        self._transfer_file(_packed(image, os.path.join(C.DEFAULT_LOCAL_TMP, name)), remote)
        self._fixup_perms2((folder, remote), execute=False)
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
