"""Refuses a playbook whose Python does not read this checkout's package.

First in `callbacks_enabled`: every other plugin imports the package, and another checkout's would run unnoticed.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: environment
type: aggregate
short_description: Refuse a Python environment of another checkout
description:
  - Ends the run before its first task, with status 1, where the package C(trainyard) is missing or another checkout's.
"""

import importlib.util
from pathlib import Path

from ansible.plugins.callback import CallbackBase

CHECKOUT = Path(__file__).resolve().parents[2]


def problem(package: str | None, checkout: Path = CHECKOUT) -> str:
    """Return what is wrong with the environment and how to correct it; empty for nothing.

    :param package: file of the package that Python imports; None for none.
    """
    remedy = f"Run make env in {checkout}, then source .venv/bin/activate."
    if package is None:
        return f"The Python environment does not have this checkout's package. {remedy}"
    if Path(package).resolve() != checkout / "src" / "trainyard" / "__init__.py":
        return f"The Python environment is of another checkout: {package}. {remedy}"
    return ""


found = importlib.util.find_spec("trainyard")
if wrong := problem(found.origin if found else None):
    # When this file is imported: the next plugin would end with a traceback.
    raise SystemExit(wrong)


class CallbackModule(CallbackBase):
    """Has nothing to do in a run."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "environment"
    CALLBACK_NEEDS_ENABLED = True
