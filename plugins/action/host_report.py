"""Report which hosts can be nodes, and why the others cannot, from the results of all checks of this run.

There is no module of this name, as nothing runs on a host.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase

from trainyard.core.proxy import of_environment
from trainyard.core.untrusted import at, items, line, mapping
from trainyard.site.proxies import SCHEMES

UNREACHABLE = "unreachable"
PARTS = ("code", "cause", "remedy")
"""Parts of a reason (src/trainyard/host/preflight_checks.py)."""
TWINS = (
    "{hosts} have the same machine-id: they are copies of one disk. On all but one, remove /etc/machine-id and run "
    "systemd-machine-id-setup."
)
FLUSHES = (
    "On {hosts}, nftables.service begins with `flush ruleset` (/etc/nftables.conf): each start deletes the rules of "
    "kube-proxy and Calico. Replace the line by `destroy table` for the tables of that file."
)
PROXIES = (
    "base_proxy is empty, but {hosts} {verb} a proxy: {where}. Set base_proxy, which apt, containerd and downloads use "
    "(docs/tasks/check-hosts.md)."
)
MOST_FILES = 10
"""Files of a host that a warning names."""


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
        later = arguments["later"]
        # Raw: a host chooses the texts of its facts, and none of them is a template.
        known = {name: task_vars["hostvars"].raw_get(name) for name in arguments["hosts"]}
        # A host outside the limit of the call was not checked.
        names = [name for name in arguments["hosts"] if name in later or "host_reasons" in known[name]]
        hosts = {name: _state(known[name], name in later) for name in names}
        # The controller downloads as root, and sudo drops the environment.
        proxied = self._templar.template(task_vars.get("base_proxy") or {})
        own = "" if any(map(proxied.get, SCHEMES)) else of_environment(os.environ)
        warnings = [*_twins(hosts), *_flushing(known), *_proxies(known, {"its environment": own} if own else {})]
        width = max(map(len, hosts), default=0)
        lines = [_line(name, host, width) for name, host in hosts.items()]
        return {**result, "changed": False, "hosts": hosts, "warnings": warnings, "report": lines}


def _state(known: Mapping[str, Any], later: bool) -> dict[str, Any]:
    """Return the state of a host. Root of a host controls all its answers, which must not end the report of others."""
    if later:
        return {"state": "later", "about": "the lab creates it", "reasons": []}
    if known.get("host_reasons") is None:
        return {"state": UNREACHABLE, "about": "Ansible cannot connect to it.", "reasons": []}
    reasons = [{name: line(at(each, name)) for name in PARTS} for each in items(known["host_reasons"])]
    if not reasons and known.get("host_checks_ended") is not True:
        return {"state": UNREACHABLE, "about": "Its checks did not end; the task above shows why.", "reasons": []}
    host = at(known, "__base_preflight", "host")
    seen = {name: line(at(host, name)) for name in ("system", "machine", "machine_id")}
    return {"state": "refused" if reasons else "works", "about": _about(known, seen), "reasons": reasons, **seen}


def _about(known: Mapping[str, Any], seen: Mapping[str, str]) -> str:
    """Return system, architecture, node address and interfaces of a host."""
    words = [f"{seen['system']} {seen['machine']}".strip()]
    address, facts = line(known.get("host_node_ip")), known.get("ansible_facts")
    names = [line(each) for each in items(at(facts, "interfaces"))]
    own = [name for name in names if address and at(facts, name.replace("-", "_"), "ipv4", "address") == address]
    if address:
        words.append(f"node address {address}" + (f" on {own[0]}" if own else ""))
    default = line(at(facts, "default_ipv4", "interface"))
    if own and default and default != own[0]:
        words.append(f"the default route on {default} is not used")
    return ", ".join(word for word in words if word)


def _twins(hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning for hosts that are copies of one disk: leases and logs would mix them up."""
    same: defaultdict[str, list[str]] = defaultdict(list)
    for name, host in hosts.items():
        if host.get("machine_id"):
            same[host["machine_id"]].append(name)
    return [TWINS.format(hosts=" and ".join(names)) for names in same.values() if len(names) > 1]


def _flushing(known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning for hosts whose own firewall would delete the rules of the cluster."""
    names = [name for name, found in known.items() if at(found, "__base_preflight", "host", "flushes") is True]
    return [FLUSHES.format(hosts=" and ".join(names))] if names else []


def _proxies(known: Mapping[str, Mapping[str, Any]], controller: Mapping[str, str]) -> list[str]:
    """Return a warning for each group of hosts that name the same proxy in the same files.

    :param controller: the same for this machine.
    """
    same: defaultdict[str, list[str]] = defaultdict(list)
    for name, found in {**known, "this controller": {"__base_preflight": {"proxies": controller}}}.items():
        seen = list(mapping(at(found, "__base_preflight", "proxies")).items())[:MOST_FILES]
        if where := ", ".join(f"{line(url, 200)} in {line(path, 200)}" for path, url in seen):
            same[where].append(name)
    return [
        PROXIES.format(hosts=" and ".join(names), verb="names" if len(names) == 1 else "name", where=where)
        for where, names in same.items()
    ]


def _line(name: str, host: Mapping[str, Any], width: int) -> str:
    reasons = [f"{each['cause']}. {each['remedy']}" for each in host["reasons"]]
    return f"{name:{width}}  {host['state']:11}  {' | '.join(reasons) or host['about']}"
