"""Documentation that modules with a kubeconfig share; `trainyard.kube.connection.ARGUMENTS` is its specification."""

from __future__ import annotations


class ModuleDocFragment:
    """Options, read by `ansible-doc`."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description: Path of the kubeconfig.
    type: path
    required: true
requirements: [kubernetes]
"""
