#!/usr/bin/python
"""Find what a cluster has that is not the site's."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cluster_findings
short_description: Find what a cluster has that is not the site's
description:
  - Looks for nodes that are cordoned, tainted by others, missing or unknown; for rights that lead to the whole cluster;
    for ports on nodes, pods with rights on their node, webhooks and APIs in any namespace; and for fields of kubeadm's
    ConfigMaps that differ from the inventory.
  - Nothing of it is repaired here. A check run shows each as a change, any other run warns of each and reports none.
  - An object is the site's where a run renders it, by the record that M(kube_apply) keeps beside O(kubeconfig), and
    where it opens nothing beyond that. Labels and field managers count for nothing.
  - Runs where the kubeconfig is, usually on the controller.
options:
  kubeconfig:
    description: Path of the kubeconfig.
    type: path
    required: true
  nodes:
    description: Names of the nodes that the cluster should have.
    type: list
    elements: str
    required: true
  control_plane:
    description: Those of them that are of the control plane.
    type: list
    elements: str
    required: true
  namespaces:
    description: Namespaces of the system. Rights in one of them count as rights in the whole cluster.
    type: list
    elements: str
    default: [kube-system]
  recorded:
    description:
      - Parts of the site that must be on record, by the names that M(kube_apply) gives them.
      - Without one of them rights and doors are not looked at; a check run has that as its finding.
    type: list
    elements: str
    default: []
  kubeadm_config:
    description: Documents of the kubeadm configuration that the inventory renders. Empty leaves the ConfigMaps alone.
    type: list
    elements: dict
    default: []
  accepted:
    description:
      - What is meant to be so, by the names that findings have, such as C(Service web/shop), or as a mapping of C(name)
        and C(reason).
      - V(*) and V(?) in a name stand for any characters.
    type: list
    elements: raw
    default: []
notes:
  - In check mode an API server that cannot be asked is no error; the result says that nothing could be planned.
attributes:
  check_mode:
    support: full
    description: Shows every finding as a change; otherwise warns of it and has changed nothing.
  diff_mode:
    support: full
    description: Shows what is there, and what should be.
requirements: [kubernetes, PyYAML]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Look for what is not the site's
  cluster_findings:
    kubeconfig: /var/lib/trainyard/kubeconfig
    nodes: [cp1, worker1]
    control_plane: [cp1]
    accepted:
      - {name: Service web/shop, reason: the shop is served from here}
"""

RETURN = r"""
for_a_person:
  description: The findings, one sentence each.
  type: list
  elements: str
  returned: always
judged:
  description: Whether rights and doors were looked at.
  type: bool
  returned: when the API server could be asked
planned:
  description: False when check mode could not ask the API server.
  type: bool
  returned: when it could not be asked
unread:
  description: Why check mode could not read the present state.
  type: str
  returned: when I(planned) is false
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.finding import Finding, accepted_of, run_with_findings, without
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.drift import rendered
from ansible.module_utils.trainyard.drift.cluster import Site, cluster_findings, snapshot
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.kubeconfig import connect
from ansible.module_utils.trainyard.kube.reads import read


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
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
            module.warn(f"Not looked for what is not the site's: {error}")
            steps = [f"Not planned: {error}"] if module.check_mode else []
            about = {"planned": False, "unread": str(error), "steps": steps, "for_a_person": []}
            module.exit_json(changed=module.check_mode, **about)
        found = without(cluster_findings(seen, site), accepted)
        # The first run of site.yml comes here before it has rendered everything.
        if missing and module.check_mode:
            found.append(Finding("record of what is rendered", f"lacks {', '.join(missing)}", "written by site.yml"))
        return Plan(), found

    run_with_findings(module, look, result)


if __name__ == "__main__":
    main()
