"""Clean all texts before Ansible shows them, because the root user of a host controls its texts.

Ansible shows warnings, differences and errors of a module unchanged. Escape sequences in them reach the operator's
terminal. They could also forge events of other hosts for ansible-runner, which reads events from the same output.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: plain_output
type: aggregate
short_description: Show no control characters of hosts
description:
  - Removes control characters and escape sequences from Ansible's output, and cuts texts of more than 1 MiB.
  - Keeps Ansible's own colours of differences.
"""

import re
from typing import Any

from ansible import constants
from ansible.plugins.callback import CallbackBase
from ansible.utils import color

from trainyard.core.untrusted import CUT, clean

LONGEST = 2**20
"""Limit of the characters of one text, about 10,000 lines; a difference of a large manifest is shorter."""


def own_colours() -> re.Pattern[str]:
    """Return a pattern of the sequences with which Ansible colours a difference; it matches nothing without colours."""
    if not color.ANSIBLE_COLOR:
        return re.compile("(?!)")
    names = (constants.COLOR_DIFF_ADD, constants.COLOR_DIFF_REMOVE, constants.COLOR_DIFF_LINES)
    codes = {"0", *(color.parsecolor(name) for name in names)}
    return re.compile(rf"(\x1b\[(?:{'|'.join(map(re.escape, sorted(codes)))})m)")


def plain(text: str) -> str:
    """Return a text for display: without control characters, and not longer than `LONGEST`."""
    parts = own_colours().split(text[:LONGEST])
    # Each second part is a colour that the pattern has matched.
    shown = "".join(part if index % 2 else clean(part) for index, part in enumerate(parts))
    return shown if len(text) <= LONGEST else f"{shown}{CUT}"


class CallbackModule(CallbackBase):
    """Wraps the method through which Ansible shows all texts."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "plain_output"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        # Set on the object, so that it also works if another plugin has replaced the method of the class.
        shown = self._display.display

        def display(msg: Any, *arguments: Any, **options: Any) -> None:
            shown(plain(msg) if isinstance(msg, str) else msg, *arguments, **options)

        self._display.display = display
