"""Refuse a playbook whose Python does not import the package of this checkout.

This is first in `callbacks_enabled`, because all other plugins import the package. Without it, code of another checkout
could run unnoticed.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: environment
type: aggregate
short_description: Refuse a Python environment of another checkout
description:
  - Ends the run before its first task, with status 1, if the package C(trainyard) is missing or of another checkout.
"""

import importlib.util
from pathlib import Path

from ansible.plugins.callback import CallbackBase

CHECKOUT = Path(__file__).resolve().parents[2]


def problem(package: str | None, checkout: Path = CHECKOUT) -> str:
    """Return the fault of the environment and its remedy; empty without a fault.

    :param package: file of the package that Python imports; None if it is missing.
    """
    remedy = f"Run make env in {checkout}, then source .venv/bin/activate."
    if package is None:
        return f"The Python environment does not have this checkout's package. {remedy}"
    if Path(package).resolve() != (checkout / "src" / "trainyard" / "__init__.py").resolve():
        return f"The Python environment is of another checkout: {package}. {remedy}"
    return ""


found = importlib.util.find_spec("trainyard")
if wrong := problem(found.origin if found else None):
    # During the import of this file, because the next plugin would end with a traceback.
    raise SystemExit(wrong)


class CallbackModule(CallbackBase):
    """Does nothing. The check runs during the import of this file."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "environment"
    CALLBACK_NEEDS_ENABLED = True
