"""The site's proxy as variables of an environment."""

from __future__ import annotations

DOCUMENTATION = r"""
name: site_proxy
short_description: The site's proxy as variables of an environment
description:
  - Returns C(HTTP_PROXY), C(HTTPS_PROXY) and C(NO_PROXY) from C(base_proxy), for programs that fetch from the internet.
    Without a proxy, the result is empty.
  - C(NO_PROXY) has all hosts of the inventory, mirror, endpoint, networks and domain of the cluster, and C(none).
    Values that are made of facts are left out, so that the list is the same in each run.
options:
  _terms:
    description: Name of the host whose proxy is returned, for a task that is delegated to it; by default, this host.
    required: false
  direct:
    description: Return empty values for all proxies instead, for programs that call the API server.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Fetch a key on the controller
  signing_key:
    url: https://vendor.example.org/key
    fingerprint: DE15B14486CD377B9E876E1A234654DA9A296436
    path: /var/lib/trainyard/keys/vendor.asc
    proxy: "{{ lookup('site_proxy', 'localhost') }}"
  delegate_to: localhost
"""

RETURN = r"""
_raw:
  description: The variables.
  type: list
  elements: dict
"""

from contextlib import suppress
from functools import cache

from ansible.plugins.lookup import LookupBase

from trainyard.core.proxy import NAMES
from trainyard.project import ROOT
from trainyard.site.collect import read
from trainyard.site.proxies import VARIABLE, environment, exceptions
from trainyard.site.stated import is_made_of_facts, stated

OF_A_HOST = ("ansible_host", "kubernetes_node_ip")
OF_THE_MIRROR = ("mirror_name", "mirror_address")
NETWORKS = ("kubernetes_pod_cidr", "kubernetes_service_cidr")
DOMAIN = "kubernetes_dns_domain"


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, direct=False, **kwargs):
        if direct:
            return [{name: "" for lower in sorted(NAMES) for name in (lower.upper(), lower)}]
        name, hostvars = variables["inventory_hostname"], variables["hostvars"]
        host = terms[0] if terms else name
        known, raw = (variables, variables) if host == name else (hostvars[host], hostvars.raw_get(host))
        proxy = self._templar.template(known.get(VARIABLE) or {})
        return [environment(proxy, self._exceptions(known, raw, variables["groups"], hostvars, proxy) if proxy else [])]

    def _exceptions(self, known, raw, groups, hostvars, proxy):
        """Return the exceptions of a host.

        :param known: its variables; `raw` are the untemplated ones.
        """
        own = [str(each) for each in proxy.get("none") or ()]
        hosts = [each for each in groups["all"] if each not in groups.get("placeholder", ())]
        places = list(hosts)
        for host in hosts:
            for name in OF_A_HOST:
                # Ansible has several errors for a template that cannot be evaluated yet.
                with suppress(Exception):
                    places.append(stated(hostvars, host, name))

        def value(name, default=""):
            with suppress(Exception):
                if name in raw and not is_made_of_facts(raw, raw[name]):
                    return self._templar.template(known[name]) or default
            return default

        places += [str(value(name)) for name in OF_THE_MIRROR]
        places += [
            str(value("control_plane_endpoint")).rpartition(":")[0].strip("[]"),
            *value("base_hosts_entries", ()),
        ]
        networks = [str(value(name, _defaults()[name])) for name in NETWORKS]
        return exceptions(places, networks, str(value(DOMAIN, _defaults()[DOMAIN])), own)


@cache
def _defaults():
    """Return the defaults of the role kubernetes, which are no variables of other roles."""
    return read(ROOT / "roles" / "kubernetes" / "defaults" / "main.yml")
