"""Documentation that the modules for kubeadm share; `trainyard.kubeadm.kubeadm_program` has the specifications."""

from __future__ import annotations


class ModuleDocFragment:
    """Options, read by `ansible-doc`: `kubeadm` for all modules, `kubeadm.preflight` for init and join."""

    DOCUMENTATION = r"""
options:
  cri_socket:
    description: URL of the container runtime's socket.
    type: str
    default: unix:///run/containerd/containerd.sock
  etcd_data_dir:
    description: Directory of the local etcd member of a control plane node.
    type: path
    default: /var/lib/etcd
"""

    PREFLIGHT = r"""
options:
  ignore_preflight_errors:
    description: Preflight checks whose errors become warnings; V(all) is refused.
    type: list
    elements: str
    default: []
  resolv_conf:
    description: Resolver file for pods of this node; empty for the one that kubeadm would choose on this host.
    type: str
    default: ""
attributes:
  check_mode:
    support: full
    description: Reports the same plan, even if kubeadm is not installed yet.
  diff_mode:
    support: full
    description: Shows the observed and the desired state, and the steps, without secrets.
"""
