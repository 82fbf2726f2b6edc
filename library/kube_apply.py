#!/usr/bin/python
"""Apply manifests by server-side apply, changing only objects that differ according to the server."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kube_apply
short_description: Apply Kubernetes manifests and wait for conditions
description:
  - Compares all objects with the cluster by a server-side dry run, applies only those that differ, and waits for
    conditions with a timeout.
  - Objects are never pruned.
  - Runs on the host that has the kubeconfig, usually the controller.
options:
  manifest:
    description: Paths of manifests with any number of YAML documents, applied in the given order after O(definitions).
    type: list
    elements: path
    default: []
  patches:
    description:
      - Changes to objects of O(manifest), merged as in Kubernetes' strategic merge, mappings by key and lists of named
        items by name.
    type: list
    elements: dict
    default: []
    suboptions:
      kind:
        description: Kind of the object.
        type: str
        required: true
      name:
        description: Name of the object.
        type: str
        required: true
      patch:
        description: Mapping to merge into the object.
        type: dict
        required: true
      source:
        description: Name of the manifest's origin, such as a variable, for the error if the object is missing.
        type: str
        default: manifest
  definitions:
    description: Objects given inline.
    type: list
    elements: dict
    default: []
  afterwards:
    description:
      - Objects given inline, applied after O(manifest) and O(secrets). A node pulls images one after the other, so put
        pods with a large image here if nothing waits for them.
    type: list
    elements: dict
    default: []
  secrets:
    description:
      - Secrets built from files on the host that runs the module, applied after O(manifest). The module reads the files
        itself, so that secrets are neither in task arguments, which modules write to the system log, nor in a diff.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the Secret.
        type: str
        required: true
      namespace:
        description: Namespace of the Secret.
        type: str
        required: true
      type:
        description: Type of the Secret.
        type: str
        default: Opaque
      files:
        description: Key in the Secret to the path of a file.
        type: dict
        required: true
      labels:
        description: Labels of the Secret.
        type: dict
        default: {}
  wait_for:
    description: Conditions that must hold at the end. Check mode does not wait for them.
    type: list
    elements: dict
    default: []
    suboptions:
      kind:
        description: Kind of the object.
        type: str
        required: true
      name:
        description: Name of the object; without it, all objects of the kind must meet the condition, and at least one
          must exist.
        type: str
      namespace:
        description: Namespace of the object.
        type: str
      api_version:
        description: Required for kinds that are neither in C(v1) nor among the common workload kinds.
        type: str
      condition:
        description:
          - V(Exists), V(RolledOut) (Deployment, DaemonSet, StatefulSet), V(Serving) (a Service with a ready endpoint),
            or the type of a status condition that must be true, such as V(Available) or V(Ready).
        type: str
        required: true
  record:
    description:
      - Name of the part that this call renders. Objects that grant permissions or access are recorded under it, next to
        O(kubeconfig). M(cluster_findings) and M(verify_site) identify the site's objects by this record. Empty to
        record nothing.
    type: str
    default: ""
  record_more:
    description: Keep earlier records under this name, because this call renders only a part of them.
    type: bool
    default: false
  timeout:
    description: Limit in seconds for each object's apply, and for all waits together.
    type: int
    default: 180
notes:
  - In check mode, an unreachable API server is not an error; the result reports that nothing could be planned.
attributes:
  check_mode:
    support: full
    description:
      - Requests a dry run of all objects from the API server. An object whose kind or namespace does not exist yet is
        reported as not validated.
      - If the API server does not answer yet, reports that nothing could be planned.
  diff_mode:
    support: full
    description: Shows the fields that would change.
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Install the CNI
  kube_apply:
    kubeconfig: /var/lib/trainyard/kubeconfig
    manifest: [/var/cache/trainyard/calico-vxlan.yaml]
    patches:
      - {kind: DaemonSet, name: calico-node, patch: {spec: {updateStrategy: {type: OnDelete}}}}
    wait_for:
      - {kind: DaemonSet, namespace: kube-system, name: calico-node, condition: RolledOut}
      - {kind: Node, condition: Ready}
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
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.api import KubeError, Object, documents
from ansible.module_utils.trainyard.kube.apply import Wait, plan_objects, secret_of_files, unreachable_plan, wait_for
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.kube.patch import patched
from ansible.module_utils.trainyard.unmanaged.rendered import plan_record

WAIT_SPEC = {
    "kind": {"type": "str", "required": True},
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "api_version": {"type": "str"},
    "condition": {"type": "str", "required": True},
}
PATCH_SPEC = {
    "kind": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "patch": {"type": "dict", "required": True},
    "source": {"type": "str", "default": "manifest"},
}
SECRET_SPEC = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    "type": {"type": "str", "default": "Opaque"},
    # Only paths, not the content of the files.
    "files": {"type": "dict", "required": True},
    "labels": {"type": "dict", "default": {}},
}
ARGUMENT_SPEC = {
    **KUBECONFIG,
    "manifest": {"type": "list", "elements": "path", "default": []},
    "patches": {"type": "list", "elements": "dict", "default": [], "options": PATCH_SPEC},
    "definitions": {"type": "list", "elements": "dict", "default": []},
    "afterwards": {"type": "list", "elements": "dict", "default": []},
    "secrets": {"type": "list", "elements": "dict", "default": [], "options": SECRET_SPEC, "no_log": False},
    "wait_for": {"type": "list", "elements": "dict", "default": [], "options": WAIT_SPEC},
    "record": {"type": "str", "default": ""},
    "record_more": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 180},
}


def read_objects(paths: list[str]) -> list[Object]:
    """Read the objects of manifest files."""
    objects: list[Object] = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as stream:
                objects += documents(stream.read())
        except OSError as error:
            raise TrainyardError(
                f"The manifest {path} cannot be read: {error.strerror}.",
                remedy="Build the bundle first, or set another file.",
            ) from error
    return objects


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        required_one_of=[["manifest", "definitions", "afterwards"]],
        supports_check_mode=True,
    )
    params = module.params
    inline = [*params["definitions"], *params["afterwards"]]
    seen = {"planned": True}

    def not_planned(objects: list[Object], error: TrainyardError) -> Plan:
        seen["planned"] = False
        module.warn(f"Not planned: {error}")
        return unreachable_plan(objects, str(error))

    def make_plan() -> Plan:
        try:
            read = patched(read_objects(params["manifest"]), params["patches"])
            read += [secret_of_files(**each) for each in params["secrets"]]
        except TrainyardError as error:
            if not module.check_mode:
                raise
            return not_planned(inline, error)
        objects = [*params["definitions"], *read, *params["afterwards"]]
        try:
            plan = plan_objects(connect(params["kubeconfig"]), objects, timeout=params["timeout"])
        except KubeError as error:
            if not (module.check_mode and error.no_answer):
                raise
            return not_planned(objects, error)
        return recorded(plan, objects) if params["record"] else plan

    def recorded(plan: Plan, objects: list[Object]) -> Plan:
        """Return the plan with the record written first, so that the next run identifies partially applied objects."""
        record = plan_record(params["kubeconfig"], params["record"], objects, more=params["record_more"])
        if not record.changed:
            return plan
        before, after = (
            {**both, **(own or {})} for both, own in ((record.before, plan.before), (record.after, plan.after))
        )
        return Plan([*record.steps, *plan.steps], before, after)

    def make_result() -> dict[str, bool]:
        if not module.check_mode and params["wait_for"]:
            waits = [Wait(**wait) for wait in params["wait_for"]]
            wait_for(connect(params["kubeconfig"]), waits, timeout=params["timeout"])
        return seen

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
