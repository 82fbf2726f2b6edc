"""Limits on the changes of one run, and on repairs of the same item in a row."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ..core.errors import TrainyardError

_SHARE = re.compile(r"(\d{1,3})\s*%")


def share(value: str | int, of: int) -> int:
    """Return how many hosts a limit allows: at least one, percentages rounded down.

    :param value: a percentage such as "20%", or a number of hosts.
    :param of: number of hosts that a percentage refers to.
    :raises TrainyardError: the value is 0, above 100 %, or neither form.
    """
    found = _SHARE.fullmatch(str(value).strip())
    if found and 1 <= int(found[1]) <= 100:
        return max(1, of * int(found[1]) // 100)
    if not found and re.fullmatch(r"\d+", str(value).strip()) and int(value) >= 1:
        return int(value)
    raise TrainyardError(
        f"the limit is {value}, neither a share from 1% to 100% nor a number of hosts from 1",
        remedy='Write a share as "20%", with quotes.',
    )


def too_much(*, hosts: int, drifted: Collection[str], items: int, max_hosts: str | int, max_items: int) -> str:
    """Return why a run would change more than the limits allow, as a clause; empty if it would not.

    :param hosts: number of hosts of the site.
    :param drifted: hosts with something to repair, including hosts that are held back.
    :param items: number of items to repair, including the cluster's own.
    """
    allowed = share(max_hosts, hosts)
    if len(drifted) > allowed:
        shown = f"{len(drifted)} of {hosts} hosts have drifted"
        return f"{shown}, and reprovision_max_hosts ({max_hosts}) allows {allowed}"
    if items > max_items:
        return f"there are {items} items to repair, and reprovision_max_items allows {max_items}"
    return ""


def too_many_missing(*, hosts: int, unreachable: Collection[str], max_unreachable: str | int) -> str:
    """Return why too many hosts are unreachable for a converge, as a clause; empty if they are not.

    One host may always be missing, so that a machine in repair does not block the rest of the site.
    """
    allowed = share(max_unreachable, hosts)
    if len(unreachable) <= allowed:
        return ""
    named = ", ".join(sorted(unreachable)[:5])
    return (
        f"{len(unreachable)} of {hosts} hosts do not answer ({named}), and reprovision_max_unreachable "
        f"({max_unreachable}) is {allowed}"
    )


def comes_back(key: str, converges: Sequence[Collection[str]], max_repeats: int) -> bool:
    """Return whether each of the last converges repaired the same item, so that something else must change it back.

    :param converges: the keys that each converge repaired, the newest last; also of converges that ended early.
    :param max_repeats: number of repairs in a row that is too many.
    """
    last = converges[-max_repeats:]
    return len(last) == max_repeats and all(key in repaired for repaired in last)
