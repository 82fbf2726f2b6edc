"""Refuses a playbook where the inventory's folder holds a file that no person has written as an inventory.

Before the first task: Ansible templates variables such as `ansible_host` of an inventory for each task, also for that
of the validation, so that a lookup in a foreign file would run before the validation could refuse it.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: inventory_files
type: aggregate
short_description: Refuse unexpected files of an inventory's folder
description:
  - Ends the run before its first task, with status 1, and names the files.
  - The rule is that of C(trainyard.site.inventory_files).
"""

from typing import Any

from ansible.plugins.callback import CallbackBase

from trainyard.site.inventory_files import problems_of, unexpected_files_of_call


class CallbackModule(CallbackBase):
    """Looks at the folders that `-i` names."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "inventory_files"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """End the run where there is such a file; of an exception Ansible would make a warning."""
        found = unexpected_files_of_call()
        for problem in problems_of(found):
            self._display.error(str(problem), wrap_text=False)
        if found:
            raise SystemExit(1)
