#!/usr/bin/python
"""Find cluster objects that the site does not manage."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cluster_findings
short_description: Find cluster objects that the site does not manage
description:
  - Finds nodes that are cordoned, tainted by others, missing or unknown; permissions that lead to control of the whole
    cluster; node ports, pods with privileges on their node, webhooks and APIs in any namespace; and fields of kubeadm's
    ConfigMaps that differ from the inventory.
  - Repairs nothing. Check mode shows each finding as a change. A normal run warns about each and reports no change.
  - An object belongs to the site if the record that M(kube_apply) keeps next to O(kubeconfig) contains it, and if it
    grants nothing beyond the recorded object. Labels and field managers are not trusted.
  - Runs on the host that has the kubeconfig, usually the controller.
options:
  nodes:
    description: Names of the nodes that the cluster should have.
    type: list
    elements: str
    required: true
  control_plane:
    description: Names of the control plane nodes among O(nodes).
    type: list
    elements: str
    required: true
  namespaces:
    description: System namespaces. Permissions in one of them count as permissions in the whole cluster.
    type: list
    elements: str
    default: [kube-system]
  recorded:
    description:
      - Parts of the site that must be on record, by the names given in C(record) of M(kube_apply).
      - If one of them is missing, permissions and access paths are not checked; check mode reports that as a finding.
    type: list
    elements: str
    default: []
  kubeadm_config:
    description: Documents of the kubeadm configuration rendered from the inventory. If empty, the ConfigMaps are not
      checked.
    type: list
    elements: dict
    default: []
  accepted:
    description:
      - Accepted findings, by their names, such as C(Service web/shop), or as a mapping of C(name) and C(reason).
      - Names may contain the wildcards V(*) and V(?).
    type: list
    elements: raw
    default: []
notes:
  - In check mode, an unreachable API server is not an error; the result reports that nothing could be planned.
attributes:
  check_mode:
    support: full
    description: Shows each finding as a change. Without check mode, it warns about each and reports no change.
  diff_mode:
    support: full
    description: Shows the observed and the desired state of each finding.
requirements: [kubernetes, PyYAML]
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Find unmanaged objects
  cluster_findings:
    kubeconfig: /var/lib/trainyard/kubeconfig
    nodes: [cp1, worker1]
    control_plane: [cp1]
    accepted:
      - {name: Service web/shop, reason: the shop is served from here}
"""

RETURN = r"""
for_a_person:
  description: Findings, one sentence each.
  type: list
  elements: str
  returned: always
judged:
  description: Whether permissions and access paths were checked.
  type: bool
  returned: when the API server could be queried
planned:
  description: False if check mode could not query the API server.
  type: bool
  returned: when it could not be queried
unread:
  description: Reason why check mode could not read the current state.
  type: str
  returned: when I(planned) is false
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.finding import Finding, accepted_of, run_with_findings, without
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.kube.reads import read
from ansible.module_utils.trainyard.unmanaged import rendered
from ansible.module_utils.trainyard.unmanaged.unmanaged_objects import Site, cluster_findings, snapshot


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
            "nodes": {"type": "list", "elements": "str", "required": True},
            "control_plane": {"type": "list", "elements": "str", "required": True},
            "namespaces": {"type": "list", "elements": "str", "default": ["kube-system"]},
            "recorded": {"type": "list", "elements": "str", "default": []},
            "kubeadm_config": {"type": "list", "elements": "dict", "default": []},
            "accepted": {"type": "list", "elements": "raw", "default": []},
        },
        supports_check_mode=True,
    )
    params = module.params
    result = {"judged": False}

    def look() -> tuple[Plan, list[Finding]]:
        accepted = accepted_of(params["accepted"])
        record = rendered.read(params["kubeconfig"])
        missing = rendered.missing_parts(record, params["recorded"])
        result["judged"] = not missing
        site = Site(
            params["nodes"],
            params["control_plane"],
            params["kubeadm_config"],
            params["namespaces"],
            None if missing else record,
        )
        try:
            seen = read(connect(params["kubeconfig"]), snapshot())
        except KubeError as error:
            module.warn(f"Unmanaged objects were not checked: {error}")
            steps = [f"Not planned: {error}"] if module.check_mode else []
            about = {"planned": False, "unread": str(error), "steps": steps, "for_a_person": []}
            module.exit_json(changed=module.check_mode, **about)
        found = without(cluster_findings(seen, site), accepted)
        # The first run of site.yml reaches this before it has rendered all parts.
        if missing and module.check_mode:
            found.append(Finding("record of what is rendered", f"lacks {', '.join(missing)}", "written by site.yml"))
        return Plan(), found

    run_with_findings(module, look, result)


if __name__ == "__main__":
    main()
