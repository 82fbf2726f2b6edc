"""Report which hosts can be nodes, and why the others cannot, from the results of all checks of this run.

There is no module of this name, as nothing runs on a host.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase

from trainyard.core.untrusted import clean, line

UNREACHABLE = "unreachable"
TWINS = (
    "{hosts} have the same machine-id: they are copies of one disk. On all but one, remove /etc/machine-id and run "
    "systemd-machine-id-setup."
)


class ActionModule(ActionBase):
    """Returns the state of each host, and the report as text.

    `hosts` are names; `later` are those of a lab that does not run yet. A host without a result of the checks is
    unreachable.
    """

    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            argument_spec={
                "hosts": {"type": "list", "elements": "str", "required": True},
                "later": {"type": "list", "elements": "str", "default": []},
            },
        )
        hostvars = task_vars["hostvars"]
        hosts = {name: _state(hostvars[name], name in arguments["later"]) for name in arguments["hosts"]}
        warnings = _twins(hosts)
        lines = [_line(name, host, max(map(len, hosts))) for name, host in hosts.items()]
        return {**result, "changed": False, "hosts": hosts, "warnings": warnings, "report": lines}


def _state(known: Mapping[str, Any], later: bool) -> dict[str, Any]:
    if later:
        return {"state": "later", "about": "the lab creates it", "reasons": []}
    reasons = known.get("host_reasons")
    if reasons is None:
        return {"state": UNREACHABLE, "about": "Ansible cannot connect to it.", "reasons": []}
    host = (known.get("__base_preflight") or {}).get("host") or {}
    seen = {name: host.get(name, "") for name in ("system", "machine", "machine_id")}
    return {"state": "refused" if reasons else "works", "about": _about(known, host), "reasons": reasons, **seen}


def _about(known: Mapping[str, Any], host: Mapping[str, Any]) -> str:
    """Return system, architecture, node address and interfaces of a host."""
    facts = known.get("ansible_facts") or {}
    words = [f"{line(str(host.get('system', '')))} {line(str(host.get('machine', '')))}".strip()]
    address, interface = known.get("host_node_ip") or "", ""
    for name in facts.get("interfaces") or ():
        found = facts.get(str(name).replace("-", "_")) or {}
        if address and address == (found.get("ipv4") or {}).get("address"):
            interface = line(str(name))
    if address:
        words.append(f"node address {line(str(address))}" + (f" on {interface}" if interface else ""))
    default = line(str((facts.get("default_ipv4") or {}).get("interface") or ""))
    if address and default and interface and default != interface:
        words.append(f"the default route on {default} is not used")
    return ", ".join(word for word in words if word)


def _twins(hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning for hosts that are copies of one disk: leases and logs would mix them up."""
    same: defaultdict[str, list[str]] = defaultdict(list)
    for name, host in hosts.items():
        if host.get("machine_id"):
            same[host["machine_id"]].append(name)
    return [TWINS.format(hosts=" and ".join(names)) for names in same.values() if len(names) > 1]


def _line(name: str, host: Mapping[str, Any], width: int) -> str:
    reasons = [f"{each['cause']}. {each['remedy']}" for each in host["reasons"]]
    return clean(f"{name:{width}}  {host['state']:11}  {' | '.join(reasons) or host['about']}")
