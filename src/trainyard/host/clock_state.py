"""Detect a time service other than chrony. A working one is kept, with its servers."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ..core.clock import CLOCK, Clock

STA_UNSYNC = 0x0040
"""Bit of `status` for an unsynchronised clock (linux/timex.h, adjtimex(2))."""

TIMEX_BYTES = 256
"""Buffer size, larger than `struct timex`, which has 208 bytes if a long has eight."""

STATUS_WORD = 40 // ctypes.sizeof(ctypes.c_int)
"""Index of `status` in the structure: after `modes`, padded, and four longs."""

TIMESYNCD = "run/systemd/timesync"
"""Folder that exists while systemd-timesyncd runs; it creates `synchronized` there after it has set the clock."""

BOOT_SECONDS = 30.0
"""Seconds after boot by which a time service has queried its servers."""

CHRONYD = "usr/sbin/chronyd"


def is_kept(root: Path = Path("/"), clock: Clock = CLOCK) -> bool:
    """Return whether a time service other than chrony keeps the clock; on a host that just booted, wait for it first.

    The kernel forgets within a day that a clock was synchronised. A service that has worked since boot is kept, even
    if its server is unreachable for so long.
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
    """Return whether the kernel reports a synchronised clock; false if it reports nothing."""
    timex = (ctypes.c_int * (TIMEX_BYTES // ctypes.sizeof(ctypes.c_int)))()
    try:
        # With `modes` 0 the call sets nothing and needs no privilege.
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return False
    return state >= 0 and not timex[STATUS_WORD] & STA_UNSYNC
