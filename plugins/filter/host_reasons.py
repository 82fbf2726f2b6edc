"""Filter: a reason from the table of checks of hosts, as a mapping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainyard.host.preflight_checks import reason


def host_reason(code: str, **values: Any) -> dict[str, str]:
    """Return code, cause and remedy of a check (src/trainyard/host/preflight_checks.py).

    :param values: observed values, by the names in the texts of the table.
    :raises KeyError: the table has no such code, or its texts use a value that is not given.
    """
    return reason(code, **values).as_dict()


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"host_reason": host_reason}
