#!/usr/bin/python
"""Delete labelled objects that are no longer wanted."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kube_prune
short_description: Delete labelled Kubernetes objects that are no longer wanted
description:
  - M(kube_apply) never deletes. If entries can be removed from a list, such as users, their objects have a label. This
    module deletes the objects with that label that are not in O(keep).
  - Runs on the host that has the kubeconfig, usually the controller.
options:
  kinds:
    description: Kinds of objects to search.
    type: list
    elements: dict
    required: true
    suboptions:
      api_version:
        description: API version of the kind.
        type: str
        required: true
      kind:
        description: The kind.
        type: str
        required: true
      selector:
        description: Label selector of the objects that may be deleted. An empty one is refused.
        type: str
        required: true
      namespace:
        description: Namespace to search; the default is all namespaces.
        type: str
  keep:
    description: Objects that stay, by kind, namespace and name.
    type: list
    elements: dict
    default: []
notes:
  - In check mode, an unreachable API server is not an error; the result reports that nothing could be planned.
attributes:
  check_mode:
    support: full
    description: Reads as usual, and deletes nothing.
  diff_mode:
    support: full
    description: Shows the names before and after.
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Remove the objects of users who left
  kube_prune:
    kubeconfig: /var/lib/trainyard/kubeconfig
    kinds:
      - {api_version: v1, kind: ServiceAccount, namespace: trainyard-console, selector: trainyard.dev/console-user}
    keep: "{{ lookup('ansible.builtin.template', 'users.yaml.j2') | from_yaml_all | list }}"
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
planned:
  description: False if check mode could not reach the API server.
  type: bool
  returned: always
unread:
  description: Reason why check mode could not read the current state.
  type: str
  returned: when I(planned) is false
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.apply import plan_prune, unreachable_plan
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect

KIND_SPEC = {
    "api_version": {"type": "str", "required": True},
    "kind": {"type": "str", "required": True},
    "selector": {"type": "str", "required": True},
    "namespace": {"type": "str"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
            "kinds": {"type": "list", "elements": "dict", "required": True, "options": KIND_SPEC},
            "keep": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    params = module.params
    if not all(each["selector"].strip() for each in params["kinds"]):
        module.fail_json(msg="A selector is empty, which would delete all objects of its kind.")

    result = {"planned": True}

    def make_plan() -> Plan:
        try:
            return plan_prune(connect(params["kubeconfig"]), params["kinds"], params["keep"])
        except KubeError as error:
            if not (module.check_mode and error.no_answer):
                raise
            module.warn(f"Not planned: {error}")
            result["planned"] = False
            return unreachable_plan([], error.message)

    run_plan(module, make_plan, lambda: result)


if __name__ == "__main__":
    main()
