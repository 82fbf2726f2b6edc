"""Refuse a host with reasons from the table of checks (src/trainyard/host/preflight_checks.py).

There is no module of this name, as nothing runs on a host.
"""

from __future__ import annotations

from ansible.plugins.action import ActionBase

from trainyard.core.errors import TrainyardError
from trainyard.core.untrusted import clean
from trainyard.host.preflight_checks import CHECKS, Reason, reason, refuse


class ActionModule(ActionBase):
    """Fails with one reason, or with all reasons that the checks of a host have collected.

    `code` is a key of the table, and `values` maps the names in its texts to the observed values. `reasons` is a list
    of mappings with code, cause and remedy; an empty one refuses nothing.
    """

    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            argument_spec={
                "code": {"type": "str", "choices": list(CHECKS)},
                "values": {"type": "dict", "default": {}},
                "reasons": {"type": "list", "elements": "dict"},
            },
            mutually_exclusive=[("code", "reasons")],
            required_one_of=[("code", "reasons")],
        )
        if arguments["code"]:
            found = [reason(arguments["code"], **arguments["values"])]
        else:
            found = [Reason(**each) for each in arguments["reasons"]]
        try:
            refuse(str(task_vars["inventory_hostname"]), found)
        except TrainyardError as error:
            return {**result, "failed": True, "msg": clean(str(error)), **error.facts}
        return {**result, "changed": False}
