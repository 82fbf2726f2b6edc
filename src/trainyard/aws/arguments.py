"""Options that all AWS modules share, and the objects created from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .client import Aws, Patience, connect

CONNECTION: dict[str, dict[str, Any]] = {
    "profile": {"type": "str"},
    "region": {"type": "str"},
}

WAITING: dict[str, dict[str, Any]] = {
    "timeout": {"type": "int", "default": 300},
    "interval": {"type": "float", "default": 3},
}


def opened(params: Mapping[str, Any]) -> Aws:
    """Return the connection for a module's options; see `connect`."""
    return connect(params["profile"], params["region"])


def patience(params: Mapping[str, Any]) -> Patience:
    """Return the wait limits from a module's options."""
    return Patience(float(params["timeout"]), float(params["interval"]))


def given(options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the options that are set; Ansible fills in None for the others."""
    return None if options is None else {name: value for name, value in options.items() if value is not None}
