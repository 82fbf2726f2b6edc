#!/usr/bin/python
"""Read the part of a host in a kubeadm cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kubeadm_state
short_description: Read the part of a host in the control plane of a cluster
description:
  - Reads only the host's files; it changes nothing and queries no server.
options: {}
attributes:
  diff_mode:
    description: No changes to show.
    support: none
extends_documentation_fragment: [reading]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Read the host's part in the control plane
  kubeadm_state:
  register: state
"""

RETURN = r"""
control_plane:
  description:
    - V(made) for the host that created the cluster, V(joined) for one that joined its control plane, V(none) otherwise.
    - A record alone does not count, because a host that was reset by hand still has it.
    - An incomplete join does not count, either.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.kubeadm.kubeadm_program import Host, control_plane_part


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, control_plane=control_plane_part(Host()))


if __name__ == "__main__":
    main()
