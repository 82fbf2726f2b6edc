#!/usr/bin/python
"""Publish a site's receipt for the console, and for the site's own monitoring."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: receipt_publish
short_description: Publish the receipt of a site
description:
  - Stores each receipt of M(verify_site), passed or failed, as a ConfigMap in the console's namespace, and keeps the
    newest ten. A receipt that differs from the newest one only in times and counters is not published again.
  - A cluster without the console, or an unreachable API server, is not an error, because the verdict reports it.
  - Runs on the controller.
options:
  receipt:
    description: The document returned by M(verify_site).
    type: dict
    required: true
  textfile:
    description:
      - File on this host for the textfile collector of Prometheus' node exporter. If empty, none is written.
      - It is written in each run; only different series count as a change.
    type: path
    default: ""
attributes:
  check_mode:
    support: full
    description: Reads as usual, and writes nothing.
  diff_mode:
    support: full
    description: Shows the names of the receipts.
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Publish the receipt
  receipt_publish:
    kubeconfig: /srv/trainyard/kubeconfig
    receipt: "{{ site_verdict.receipt }}"
"""

RETURN = r"""
steps:
  description: Executed steps, or planned steps in check mode, one sentence each.
  type: list
  elements: str
  returned: always
"""

from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core import files
from ansible.module_utils.trainyard.core.plan import Plan, Step
from ansible.module_utils.trainyard.core.runner import run_plan
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.verify import publish
from ansible.module_utils.trainyard.verify.publish import plan_publish


def read(path: str) -> str:
    """Return a file's text; empty if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBECONFIG,
            "receipt": {"type": "dict", "required": True},
            "textfile": {"type": "path", "default": ""},
        },
        supports_check_mode=True,
    )
    path, text = module.params["textfile"], publish.render(module.params["receipt"])
    write = partial(files.write, path, text, 0o644)

    def make_plan() -> Plan:
        try:
            plan = plan_publish(connect(module.params["kubeconfig"]), module.params["receipt"])
        except KubeError as error:
            module.warn(f"The receipt is not published: {error.message}")
            plan = Plan()
        if path and publish.series(read(path)) != publish.series(text):
            return Plan([*plan.steps, Step(f"Write {path}", write)], plan.before, plan.after)
        return plan

    def make_result() -> dict[str, Any]:
        if path and not module.check_mode:
            write()
        return {}

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
