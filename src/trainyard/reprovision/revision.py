"""The revision that a run works with, as it stands in a report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ..core.command import run
from ..core.errors import CommandError

VARIABLE = "TRAINYARD_REVISION"
"""Of the environment: the revision whose checkout a program runs in, as JSON, where the schedule has chosen one."""

GIT_TIMEOUT = 60.0
"""Seconds for one call of git that reaches no other machine."""

ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}
"""Nothing of the machine's or the user's configuration takes part, and nobody is asked for a password."""

OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never")
"""Looking at a repository starts no program that the repository names."""


@dataclass(frozen=True)
class Revision:
    """What a run works with.

    :param commit: 40 hexadecimal digits, or empty outside a repository.
    :param ref: as the inventory names it: a branch, a tag or a commit.
    :param signed: whether somebody who may sign has signed it; None where nobody asked.
    :param note: why it is not the one that was asked for, or what else a reader must know; else empty.
    :param may_converge: whether a run with it may change anything.
    :param refused: why the one that was asked for is not used, where only a person can put that right; else empty.
    """

    commit: str
    ref: str
    signed: bool | None = None
    note: str = ""
    may_converge: bool = True
    refused: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def of_checkout(root: Path, environ: Mapping[str, str] = os.environ) -> Revision:
    """The revision of a checkout: what the schedule has chosen, else its own HEAD, changed files said."""
    if given := environ.get(VARIABLE):
        return Revision(**json.loads(given))
    argv = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}", *OPTIONS]
    # Its owner may be another user: looking at it carries nothing of it out.
    env = {**ENVIRONMENT, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    try:
        commit = run([*argv, "rev-parse", "HEAD"], timeout=GIT_TIMEOUT, env=env).stdout.strip()
        ref = run([*argv, "rev-parse", "--abbrev-ref", "HEAD"], timeout=GIT_TIMEOUT, env=env).stdout.strip()
        changed = run([*argv, "status", "--porcelain"], timeout=GIT_TIMEOUT, env=env).stdout.splitlines()
    except CommandError as error:
        return Revision("", "", None, f"The checkout {root} says no revision: {error.message}")
    return Revision(commit, ref, None, f"{len(changed)} files of the checkout are changed." if changed else "")
