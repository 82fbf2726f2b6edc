"""The site's proxy to the internet: its exceptions, its environment for programs, and its rule."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .forms import is_host, is_network, login_of
from .site_model import Problem, Site, problem

VARIABLE = "base_proxy"
SCHEMES = ("http", "https")

ALWAYS = ("localhost", "127.0.0.1", "::1", "169.254.169.254", ".svc")
"""This machine, AWS's metadata of an instance, and the Services of a cluster."""


def exceptions(hosts: Iterable[str], networks: Iterable[str], domain: str, own: Iterable[str]) -> list[str]:
    """Return what no proxy is used for, in a stable order.

    :param hosts: names and addresses of the site; other texts are left out.
    :param networks: of pods and Services. Go's programs understand networks, Python's and apt do not.
    :param domain: of the cluster's DNS.
    :param own: exceptions of the inventory.
    """
    found = {*ALWAYS, *map(plain, filter(is_host, hosts)), *filter(is_network, networks), f".{domain.strip('.')}", *own}
    return sorted(found - {"", "."})


def plain(host: str) -> str:
    """Return an address in its shortest form, and a name in lower case, as programs compare them."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower()


def environment(proxy: Mapping[str, Any], left_out: Iterable[str]) -> dict[str, str]:
    """Return the variables for programs that fetch; empty for a site without a proxy.

    :param proxy: value of `base_proxy`.
    :param left_out: result of `exceptions`.
    """
    found = {f"{scheme.upper()}_PROXY": str(proxy[scheme]) for scheme in SCHEMES if proxy.get(scheme)}
    return {**found, "NO_PROXY": ",".join(left_out)} if found else {}


def password_outside_vault(site: Site) -> Iterator[Problem]:
    """Refuse a proxy's password that the inventory holds as plain text."""
    for setting in site.values(VARIABLE):
        value = setting.value if isinstance(setting.value, Mapping) else {}
        for scheme in SCHEMES:
            if scheme not in setting.sealed and login_of(value.get(scheme))[1]:
                yield problem(
                    setting,
                    "its password is not encrypted",
                    "Encrypt the whole URL with `ansible-vault encrypt_string`, or keep it in an encrypted file.",
                    key=f".{scheme}",
                    value="(hidden)",
                )


PROXY_RULES = (password_outside_vault,)
