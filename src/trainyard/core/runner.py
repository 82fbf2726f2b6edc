"""The interface between trainyard's logic and Ansible: check mode, diff and errors for all modules."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .errors import TrainyardError
from .plan import Plan
from .untrusted import clean

if TYPE_CHECKING:
    # Only as a type: the programs of a host without Ansible import this file, too.
    from ansible.module_utils.basic import AnsibleModule


def run_plan(
    module: AnsibleModule,
    make_plan: Callable[[], Plan],
    make_result: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Plan, execute unless in check mode, and exit the module. A failure reports the steps completed before it.

    :param make_plan: reads the observed state and returns the plan; called exactly once.
    :param make_result: returns the module's return values; called after the plan was executed (in check mode: instead).
    """
    plan = Plan()
    # Intermediate folders get no explicit mode. Other users must not be able to write there under any umask.
    os.umask(os.umask(0) | 0o022)
    try:
        plan = make_plan()
        if not module.check_mode:
            plan.execute()
        about = {"unread": clean(plan.unread)} if plan.unread else {}
        steps = [step.what for step in plan.steps]
        module.exit_json(changed=plan.changed, diff=plan.diff(), steps=steps, **about, **make_result())
    except TrainyardError as error:
        fail(module, error, plan.done)


def fail(module: AnsibleModule, error: TrainyardError, done: Sequence[str] = ()) -> None:
    """Fail the module with the error's message, remedy and facts, and the completed steps."""
    # Ansible prints messages unescaped, and they may quote a log, a cluster object or a host.
    module.fail_json(
        msg=clean(str(error)), remedy=clean(error.remedy), changed=bool(done), steps_done=list(done), **error.facts
    )
