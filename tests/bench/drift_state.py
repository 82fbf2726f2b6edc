"""What must not change by a look: of hosts, of the cluster and of the controller, line by line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from drift_shapes import hosts_of
from stand import Stand

KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/admin.conf"
LINES, LINE = 4, 200
"""Lines of what has changed that are shown, and characters of each."""
MOVING = (".log", ".qcow2")
"""Suffixes of what is written all the time: logs, and disks of running machines, which are looked at inside."""
KINDS = (
    "namespaces,configmaps,secrets,services,serviceaccounts,persistentvolumes,persistentvolumeclaims,daemonsets,"
    "deployments,networkpolicies,clusterroles,clusterrolebindings,roles,rolebindings,customresourcedefinitions,"
    "validatingwebhookconfigurations,mutatingwebhookconfigurations"
)
"""What somebody applies; what controllers note all the time is left out."""
# Scopes of pods are transient units: they come and go with them.
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
    """Host, `cluster` or `controller` -> what a report must leave as it is, line by line."""
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
    """Place -> the first lines that differ, of those that do."""
    found = {}
    for place in before:
        lines = difflib.unified_diff(before[place].splitlines(), after[place].splitlines(), n=0, lineterm="")
        if shown := [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]:
            found[place] = "; ".join(line[:LINE] for line in shown[:LINES])
    return found


def lasting(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what its controllers write by themselves."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}
