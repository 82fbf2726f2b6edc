"""Cleans every text before Ansible shows it: what comes from a host is whatever its root wrote.

Ansible shows warnings, differences and errors of a module as they are. Escape sequences in them reach the terminal of a
person, and events that ansible-runner reads out of the same output could be forged for another host.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: plain_output
type: aggregate
short_description: Show no control characters of hosts
description:
  - Removes control characters and escape sequences from all that Ansible shows, and cuts a text of more than 1 MiB.
  - The colours in which Ansible itself shows differences stay.
"""

import re
from typing import Any

from ansible import constants
from ansible.plugins.callback import CallbackBase
from ansible.utils import color

from trainyard.core.untrusted import CUT, clean

LONGEST = 2**20
"""Characters of one text, some 10,000 lines: a difference of a large manifest is shorter."""


def own_colours() -> re.Pattern[str]:
    """Sequences with which Ansible colours a difference; none where it colours nothing."""
    if not color.ANSIBLE_COLOR:
        return re.compile("(?!)")
    names = (constants.COLOR_DIFF_ADD, constants.COLOR_DIFF_REMOVE, constants.COLOR_DIFF_LINES)
    codes = {"0", *(color.parsecolor(name) for name in names)}
    return re.compile(rf"(\x1b\[(?:{'|'.join(map(re.escape, sorted(codes)))})m)")


def plain(text: str) -> str:
    """A text as it is shown: without control characters, and not longer than `LONGEST`."""
    parts = own_colours().split(text[:LONGEST])
    # Every second part is a colour that the pattern has kept.
    shown = "".join(part if index % 2 else clean(part) for index, part in enumerate(parts))
    return shown if len(text) <= LONGEST else f"{shown}{CUT}"


class CallbackModule(CallbackBase):
    """Puts the cleaning before the one method through which Ansible shows every text."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "plain_output"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        # An attribute of the one object, so that it holds whatever else has replaced the method of the class.
        shown = self._display.display

        def display(msg: Any, *arguments: Any, **options: Any) -> None:
            shown(plain(msg) if isinstance(msg, str) else msg, *arguments, **options)

        self._display.display = display
