#!/usr/bin/python
"""Say what part a host has in a kubeadm cluster; read-only."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kubeadm_state
short_description: Say what part a host has in the control plane of a cluster
description:
  - Looks at the host's files only; it changes nothing and asks no server.
options: {}
attributes:
  check_mode:
    description: The same as a real run.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Look at the control plane
  kubeadm_state:
  register: state
"""

RETURN = r"""
control_plane:
  description:
    - V(made) for the host that made the cluster, V(joined) for one that is in its control plane, V(none) for others.
    - A record alone does not count, because a host that was reset by hand still has it.
    - Neither does a join that has not ended.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.kubeadm.program import Host, control_plane_part


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, control_plane=control_plane_part(Host()))


if __name__ == "__main__":
    main()
