"""Whether another time service than chrony keeps this host's clock: one that works is left alone, with its servers."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ..core.clock import CLOCK, Clock

STA_UNSYNC = 0x0040
"""Bit of `status` by which the kernel says that nothing keeps its clock (linux/timex.h, adjtimex(2))."""

TIMEX_BYTES = 256
"""More than the size of `struct timex`, which is 208 bytes where a long has eight."""

STATUS_WORD = 40 // ctypes.sizeof(ctypes.c_int)
"""Place of `status` in it: after `modes`, padded, and four longs."""

TIMESYNCD = "run/systemd/timesync"
"""Folder that is there while systemd-timesyncd runs; it makes `synchronized` in it when it has set the clock."""

BOOT_SECONDS = 30.0
"""Since the boot; a time service that has servers has asked one by then."""

CHRONYD = "usr/sbin/chronyd"


def is_kept(root: Path = Path("/"), clock: Clock = CLOCK) -> bool:
    """Whether a time service other than chrony keeps the clock; of a host that has just booted, after a moment for it.

    The kernel forgets within a day that a clock was synchronised. A server that was away for so long is no reason to
    replace a service that has worked since the boot.
    """
    if (root / CHRONYD).exists():
        return False
    # The kernel's monotonic clock begins with the boot.
    while not (found := is_synchronised() or (root / TIMESYNCD / "synchronized").exists()):
        if not (root / TIMESYNCD).is_dir() or clock.monotonic() > BOOT_SECONDS:
            break
        clock.sleep(1.0)
    return found


def is_synchronised() -> bool:
    """Whether the kernel knows its clock to be synchronised; false where it does not say."""
    timex = (ctypes.c_int * (TIMEX_BYTES // ctypes.sizeof(ctypes.c_int)))()
    try:
        # With `modes` 0 nothing is set, and no right is needed.
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return False
    return state >= 0 and not timex[STATUS_WORD] & STA_UNSYNC
