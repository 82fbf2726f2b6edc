"""Show the times of the tasks at the end of a run, then the site's receipt.

Ansible calls a project's callbacks before those of collections. Next to `ansible.posix.profile_tasks` the receipt would
never come last, so it extends that callback.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: times_and_receipt
type: aggregate
short_description: Times of the tasks, and at the end the receipt of M(verify_site)
description:
  - Works like P(ansible.posix.profile_tasks#callback), with the same settings.
  - Shows the last table of M(verify_site) at the end of the run; nothing if it did not run.
options:
  output_limit:
    description: Number of tasks in the summary, or V(all).
    default: 20
    env: [{name: PROFILE_TASKS_TASK_OUTPUT_LIMIT}]
    ini: [{section: callback_profile_tasks, key: task_output_limit}]
  sort_order:
    description: Order of the summary.
    choices: [descending, ascending, none]
    default: descending
    env: [{name: PROFILE_TASKS_SORT_ORDER}]
    ini: [{section: callback_profile_tasks, key: sort_order}]
  summary_only:
    description: Show only the summary.
    type: bool
    default: false
    env: [{name: PROFILE_TASKS_SUMMARY_ONLY}]
    ini: [{section: callback_profile_tasks, key: summary_only}]
"""

from typing import Any

from ansible_collections.ansible.posix.plugins.callback import profile_tasks


class CallbackModule(profile_tasks.CallbackModule):
    """Task times and receipt."""

    CALLBACK_NAME = "times_and_receipt"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._receipt: list[str] = []

    def v2_runner_on_ok(self, result: Any) -> None:
        """Store the table of a verdict; `result` is an `ansible.executor.task_result.CallbackTaskResult`."""
        if result.task.action == "verify_site":
            self._receipt = result.result["table"]

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Show the times, then the receipt."""
        super().v2_playbook_on_stats(stats)
        if self._receipt:
            self._display.banner("RECEIPT")
            self._display.display("\n".join(self._receipt))
