"""Rules about the console (users, ports, certificate) and about the certificates of kubelets."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core import untrusted
from ..verify.certificate import covers, names_of, trouble_of
from .site_model import Problem, Setting, Site, problem
from .training_rules import trainings

CONSOLE_VARIABLES = (
    "dashboard_ca_file",
    "dashboard_certificate_file",
    "dashboard_exposure",
    "dashboard_key_file",
    "dashboard_node_port",
    "dashboard_tensorboard_node_port",
    "dashboard_tls",
    "dashboard_token_hours",
    "kubernetes_serving_certificates",
)
"""Variables with defaults that these rules need."""

USER = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
"""Objects are named after users, and their names have at most 63 characters."""

NODE_PORTS = range(30000, 32768)
"""Default range of Kubernetes (`--service-node-port-range` of the API server)."""

TOKEN_HOURS = range(1, 25)


def _users(site: Site) -> Iterator[tuple[Setting, int, Mapping[str, Any]]]:
    for setting in site.values("dashboard_users"):
        for index, user in enumerate(setting.value if isinstance(setting.value, list) else []):
            if isinstance(user, Mapping):
                yield setting, index, user


def user_names(site: Site) -> Iterator[Problem]:
    """Refuse invalid names, names reserved by Kubernetes, and repeated users."""
    for setting, index, user in _users(site):
        name, key = str(user.get("name", "")), f"[{index}].name"
        if name.startswith("system:"):
            yield problem(
                setting, "names with system: are reserved by Kubernetes", "Choose another name.", key=key, value=name
            )
        elif not USER.fullmatch(name):
            remedy = "Use lower case letters, digits and dashes, 40 at most, for example alice."
            yield problem(setting, "not a valid user name", remedy, key=key, value=name)
    for setting in site.values("dashboard_users"):
        listed = setting.value if isinstance(setting.value, list) else []
        counts = Counter(str(user.get("name")) for user in listed if isinstance(user, Mapping))
        for name in (name for name, count in counts.items() if count > 1):
            yield problem(setting, "listed twice", "Give each user one entry, with all its namespaces.", value=name)


def user_namespaces(site: Site) -> Iterator[Problem]:
    """Refuse a namespace without a training of the site.

    Its users would see nothing, or objects that are not meant for users.
    """
    known = {str(each.description.get("namespace", "trainings")) for each in trainings(site)}
    known |= {str(setting.value) for setting in site.values("storage_namespace")} | {"trainings"}
    known |= {str(name) for each in site.values("workloads_namespaces") for name in untrusted.mapping(each.value)}
    for setting, index, user in _users(site):
        listed = user.get("namespaces")
        for namespace in listed if isinstance(listed, list) else ():
            if namespace not in known:
                fault = f"no training of the site is in that namespace; there are {', '.join(sorted(known))}"
                remedy = "Name one of these, or give a training that namespace."
                yield problem(setting, fault, remedy, key=f"[{index}].namespaces", value=namespace)


def token_hours(site: Site) -> Iterator[Problem]:
    for setting in site.values("dashboard_token_hours"):
        if isinstance(setting.value, int) and setting.value not in TOKEN_HOURS:
            yield problem(setting, "a login is valid for 1 to 24 hours", "Use 24 or less.")


def node_ports(site: Site) -> Iterator[Problem]:
    """Refuse node ports outside of the cluster's range, and one port for both pages, if the console uses node ports."""
    if not any(setting.value == "node_port" for setting in site.values("dashboard_exposure")):
        return
    pages = list(site.values("dashboard_node_port"))
    for setting in (*pages, *site.values("dashboard_tensorboard_node_port")):
        if isinstance(setting.value, int) and setting.value not in NODE_PORTS:
            fault = f"a node port is from {NODE_PORTS[0]} to {NODE_PORTS[-1]}"
            yield problem(setting, fault, f"Use one of these, for example {NODE_PORTS[443]}.")
    for setting in site.values("dashboard_tensorboard_node_port"):
        if setting.value in {each.value for each in pages}:
            yield problem(setting, "used by dashboard_node_port", "Give TensorBoard another port.")


def provided_certificate(site: Site) -> Iterator[Problem]:
    """Refuse a provided certificate that is missing, has expired, or lacks a name of the console."""
    if not any(setting.value == "provided" for setting in site.values("dashboard_tls")):
        return
    for name in ("dashboard_certificate_file", "dashboard_key_file"):
        for setting in site.values(name):
            if not setting.value or not Path(str(setting.value)).expanduser().is_file():
                yield problem(setting, "no such file, but dashboard_tls: provided needs it", "Name a file in PEM.")
    for setting in site.values("dashboard_certificate_file"):
        path = Path(str(setting.value)).expanduser()
        if setting.value and path.is_file():
            yield from _judged(site, setting, path.read_bytes())


def _judged(site: Site, setting: Setting, pem: bytes) -> Iterator[Problem]:
    from cryptography import x509

    try:
        held = names_of(x509.load_pem_x509_certificates(pem)[0])
    except ValueError:
        yield problem(setting, "not a certificate in PEM", "Name a file with the certificate, followed by its chain.")
        return
    _, trouble = trouble_of(pem, b"", held[0] if held else "", datetime.now(UTC))
    if trouble and held:
        yield problem(setting, trouble, "Provide a certificate that is valid now.")
    lacking = [name for name in _names(site) if not covers(held, name)]
    if lacking:
        remedy = "Provide another one, or set dashboard_names to the names in it."
        yield problem(setting, f"it is not for {', '.join(lacking)}", remedy)


def _names(site: Site) -> list[str]:
    """Return the names of the console in browsers: the configured names, else those of the control plane."""
    said = [setting.value for setting in site.settings if setting.name == "dashboard_names" and setting.resolved]
    if said:
        return [str(name) for name in said[0] or ()]
    return [site.addresses.get(host, host) for host in site.groups.get("control_plane", ())]


def kubelets_have_addresses(site: Site) -> Iterator[Problem]:
    """Refuse a host whose address the inventory lacks.

    Its kubelet requests a certificate for its address, and without the address no request can be approved.
    """
    wants = {
        host: bool(setting.value)
        for setting in site.settings
        if setting.name == "kubernetes_serving_certificates" and setting.resolved
        for host in setting.hosts
    }
    said = {
        host for each in site.settings if each.name == "kubernetes_node_ip" and each.resolved for host in each.hosts
    }
    default = any(setting.value for setting in site.values("kubernetes_serving_certificates"))
    for host in site.groups.get("cluster", ()):
        address = site.addresses.get(host)
        if address is None or host in said or not wants.get(host, default) or _is_address(address):
            continue
        yield Problem(
            f"host {host}",
            f'"{address}"',
            "reached by a name, but its kubelet's certificate needs an address from the inventory",
            "Set kubernetes_node_ip of the host, or kubernetes_serving_certificates: false.",
        )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


CONSOLE_RULES = (
    user_names,
    user_namespaces,
    token_hours,
    node_ports,
    provided_certificate,
    kubelets_have_addresses,
)
