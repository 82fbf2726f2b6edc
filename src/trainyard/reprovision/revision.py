"""The revision of a run, as in its report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ..core.command import run
from ..core.errors import CommandError

VARIABLE = "TRAINYARD_REVISION"
"""Environment variable: the revision that the schedule has chosen, as JSON. The program runs in its checkout."""

GIT_TIMEOUT = 60.0
"""Seconds for a local call of git."""

ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}
"""Environment without the configuration of the machine and of the user, and without password prompts."""

OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never")
"""Options that keep git from starting a program that the repository names."""


@dataclass(frozen=True)
class Revision:
    """The revision of a run.

    :param commit: 40 hexadecimal digits, or empty outside a repository.
    :param ref: name in the inventory: a branch, a tag or a commit.
    :param signed: whether an allowed signer has signed it; None if signatures are not required.
    :param note: why it is not the requested revision, or another note for the reader; else empty.
    :param may_converge: whether a run with it may change anything.
    :param refused: why the requested revision is not used, if only an operator can correct this; else empty.
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
    """Return the revision of a checkout: the choice of the schedule, else HEAD with a note of changed files."""
    if given := environ.get(VARIABLE):
        return Revision(**json.loads(given))
    argv = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}", *OPTIONS]
    # The owner may be another user. These calls execute nothing from the checkout.
    env = {**ENVIRONMENT, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    try:
        commit = run([*argv, "rev-parse", "HEAD"], timeout=GIT_TIMEOUT, env=env).stdout.strip()
        ref = run([*argv, "rev-parse", "--abbrev-ref", "HEAD"], timeout=GIT_TIMEOUT, env=env).stdout.strip()
        changed = run([*argv, "status", "--porcelain"], timeout=GIT_TIMEOUT, env=env).stdout.splitlines()
    except CommandError as error:
        return Revision("", "", None, f"The revision of the checkout {root} is unknown: {error.message}")
    return Revision(commit, ref, None, f"{len(changed)} files of the checkout are changed." if changed else "")
