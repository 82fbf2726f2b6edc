"""How much harm one run may do at most, and when repairing the same thing again is no repair any more."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ..core.errors import TrainyardError

_SHARE = re.compile(r"(\d{1,3})\s*%")


def share(value: str | int, of: int) -> int:
    """How many of a number of hosts a limit allows: at least one, a percentage rounded down.

    :param value: a percentage such as "20%", or a number of hosts.
    :raises TrainyardError: it is 0, more than 100 %, or neither.
    """
    found = _SHARE.fullmatch(str(value).strip())
    if found and 1 <= int(found[1]) <= 100:
        return max(1, of * int(found[1]) // 100)
    if not found and re.fullmatch(r"\d+", str(value).strip()) and int(value) >= 1:
        return int(value)
    raise TrainyardError(
        f"the limit is {value}, and has to be from 1% to 100%, or a number of hosts from 1 on",
        remedy='Write a share as "20%", with quotes.',
    )


def too_much(*, hosts: int, drifted: Collection[str], items: int, max_hosts: str | int, max_items: int) -> str:
    """Why a run would change more than it may, as a clause; empty if it would not.

    :param hosts: how many hosts the site has.
    :param drifted: those on which there is something to repair, the ones that are held back included.
    :param items: how many items there are to repair, the cluster's own included.
    """
    allowed = share(max_hosts, hosts)
    if len(drifted) > allowed:
        shown = f"{len(drifted)} of {hosts} hosts have drifted"
        return f"{shown}, and reprovision_max_hosts ({max_hosts}) lets a run change {allowed}"
    if items > max_items:
        return f"there are {items} items to repair, and reprovision_max_items lets a run repair {max_items}"
    return ""


def too_many_missing(*, hosts: int, unreachable: Collection[str], max_unreachable: str | int) -> str:
    """Why too many hosts do not answer for a converge, as a clause; empty if not.

    One may always be missing: a site is not left alone because a machine is being repaired.
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
    """Whether the last converges in a row have all repaired one item: somebody else writes there.

    :param converges: the keys that each converge has repaired, the newest last; those that ended early as well.
    :param max_repeats: how many in a row are too many.
    """
    last = converges[-max_repeats:]
    return len(last) == max_repeats and all(key in repaired for repaired in last)
