"""State of hosts, the cluster and the controller, line by line, which a report must not change."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from drift_shapes import hosts_of
from stand import Stand

KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/admin.conf"
LINES, LINE = 4, 200
"""Number of shown changed lines, and characters of each."""
MOVING = (".log", ".qcow2")
"""Suffixes of files that change constantly: logs, and disks of running machines, which are compared from inside."""
KINDS = (
    "namespaces,configmaps,secrets,services,serviceaccounts,persistentvolumes,persistentvolumeclaims,daemonsets,"
    "deployments,networkpolicies,clusterroles,clusterrolebindings,roles,rolebindings,customresourcedefinitions,"
    "validatingwebhookconfigurations,mutatingwebhookconfigurations"
)
"""Kinds that users apply, without those that controllers write constantly."""
# Scopes of pods are transient units, which come and go with them.
FILES = """
find /etc /usr/local /var/lib/kubelet/config.yaml /var/lib/kubelet/pki -xdev ! -type d \
  ! -path '/etc/cni/net.d/*' ! -name resolv.conf ! -name mtab -printf '%p %m %s %T@ %C@ %l\\n' | sort
dpkg-query --show --showformat='${Package} ${Version} ${db:Status-Abbrev}\\n'
systemctl list-unit-files --no-legend --no-pager | grep -v ' transient ' | sort
systemctl is-active containerd kubelet docker nginx docker-registry chrony || true
sysctl --all 2> /dev/null | grep -E 'net.ipv4.ip_forward |bridge-nf-call' | sort
cat /etc/hosts
"""


def state(stand: Stand) -> dict[str, str]:
    """Return host, `cluster` or `controller` -> the state that a report must not change, line by line."""
    found = {}
    for host in hosts_of(stand.inventory):
        found[host] = stand.on_node(host, "sh", "-c", FILES)
    listed = json.loads(stand.on_node("cp1", "sh", "-c", f"{KUBECTL} get {KINDS} --all-namespaces --output=json"))
    found["cluster"] = "\n".join(json.dumps(lasting(each), sort_keys=True) for each in listed["items"])
    paths = sorted(path for path in stand.state.rglob("*") if path.is_file() and "reprovision" not in path.parts)
    told = [f"{path} {path.stat().st_mode:o} {path.stat().st_mtime_ns}" for path in paths if path.suffix not in MOVING]
    found["controller"] = "\n".join(told)
    return found


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return place -> the first differing lines, for each place that differs."""
    found = {}
    for place in before:
        lines = difflib.unified_diff(before[place].splitlines(), after[place].splitlines(), n=0, lineterm="")
        if shown := [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]:
            found[place] = "; ".join(line[:LINE] for line in shown[:LINES])
    return found


def lasting(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without fields that controllers write."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}
