"""Attributes of modules that only read."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes, read by `ansible-doc`."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: Runs as usual, because it never changes anything.
"""
