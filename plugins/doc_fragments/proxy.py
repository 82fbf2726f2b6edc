"""Documentation that modules share which fetch from vendors; `trainyard.core.proxy` has the specification."""

from __future__ import annotations


class ModuleDocFragment:
    """An option, read by `ansible-doc`."""

    DOCUMENTATION = r"""
options:
  proxy:
    description: Variables of the environment that select a proxy, as from the lookup P(site_proxy#lookup). If empty,
      the proxies of the process are used.
    type: dict
    default: {}
"""
