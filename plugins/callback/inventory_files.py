"""Refuse a playbook if the inventory's folder contains a file that was not written as an inventory.

This happens before the first task. Ansible templates variables such as `ansible_host` for each task, also for the
validation. A lookup in an unexpected file would run before the validation could refuse it.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: inventory_files
type: aggregate
short_description: Refuse unexpected files in an inventory's folder
description:
  - Ends the run before its first task, with status 1, and names the files.
  - The rule is that of C(trainyard.site.inventory_file_rules).
"""

from typing import Any

from ansible.plugins.callback import CallbackBase

from trainyard.site.inventory_file_rules import problems_of, unexpected_files_of_call


class CallbackModule(CallbackBase):
    """Checks the folders of `-i`."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "inventory_files"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """End the run if there is such a file. Ansible would turn another exception than SystemExit into a warning."""
        found = unexpected_files_of_call()
        for problem in problems_of(found):
            self._display.error(str(problem), wrap_text=False)
        if found:
            raise SystemExit(1)
