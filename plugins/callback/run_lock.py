"""Warn if a run has lost its lease, and release its locks at its end.

Nothing depends on this callback. The keeper of the locks (`trainyard.site_lock.keeper`) watches the run's process, and
otherwise releases them a moment later. The task `run_lock` takes the locks, because a callback cannot refuse a run.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: run_lock
type: aggregate
short_description: Locks of a site during a run
description:
  - Warns once if the lease that the task C(run_lock) has taken was lost. Releases the locks at the end of the run.
  - Ends the run when the program that started it and holds its locks is killed.
"""

import os
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

from trainyard.core.command import STARTER, end_with
from trainyard.site_lock import keeper
from trainyard.site_lock.holder import parse, start_of


class CallbackModule(CallbackBase):
    """Reads the keeper's lock file, and ends the keeper."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "run_lock"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        # Programs that the run starts must not take this process's starter for theirs.
        if (starter := os.environ.pop(STARTER, "")).isdecimal():
            end_with(int(starter))
        self._taken: dict[str, Any] = {}
        self._said = ""

    def v2_runner_on_ok(self, result: Any) -> None:
        """Store the keeper; `result` is an `ansible.executor.task_result.CallbackTaskResult`."""
        if result.task.action == "run_lock" and result.result.get("keeper"):
            self._taken = dict(result.result)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """Check that the locks are still held."""
        lost = self._lost()
        if lost and lost != self._said:
            self._display.warning(f"Another run may change the site at the same time. {lost}")
        self._said = lost

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Release the locks."""
        self.v2_playbook_on_task_start(None, False)
        if self._keeps() and not keeper.stop(self._taken["keeper"]):
            self._display.warning("The locks of the site are released late: the API server does not answer.")

    def _lost(self) -> str:
        if not self._taken:
            return ""
        if not self._keeps():
            return "The process that keeps the locks of this run has ended."
        try:
            holder = parse(Path(self._taken["lock"]).read_text(encoding="utf-8"))
        except OSError as error:
            return f"The lock {self._taken['lock']} cannot be read: {error.strerror}."
        return holder.lost if holder else ""

    def _keeps(self) -> bool:
        return bool(self._taken) and start_of(self._taken["keeper"]) == self._taken["keeper_started"] != 0
