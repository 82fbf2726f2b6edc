"""Forms of values: addresses, networks, names, paths, sizes, image references, identifiers of a cloud.

A role declares the forms of its variables in `meta/forms.yml`, beside the argument specification, whose schema has no
place for them: `NAME: FORM` for a text, `NAME: [FORM]` for each element of a list, `NAME: {KEY: FORM}` for a
dictionary or each dictionary of a list, and the keys `(key)` and `(value)` for a dictionary with free keys. A form is a
key of `FORMS`. An empty text is accepted where the role's default is empty.

A value is checked as a whole. A value that can work is accepted; relations between values are rules of their own.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .site_model import Problem, Setting, Site, problem

LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
"""RFC 1123, section 2.1."""
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?([eE][0-9]+|m|k|[KMGTPE]i?)?")
"""Positive quantity of Kubernetes (apimachinery, resource.Quantity): decimal and binary suffixes, or an exponent."""
COMPONENT = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
"""Path component of an image's name (distribution specification 1.1, "Pulling manifests")."""
IMAGE_PATH = re.compile(rf"{COMPONENT}(/{COMPONENT})*")
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")
"""time.ParseDuration of Go, without a sign."""
LONGEST_PATH = 4095
"""PATH_MAX of Linux without the final NUL."""


@dataclass(frozen=True)
class Form:
    """One form.

    :param fault: why a value is refused, as a clause.
    :param remedy: a sentence with an example, or a function from the refused text to that sentence.
    :param accepts: whether a text has the form.
    :param has_login: a value may contain a password. Then a text with an @ is not shown.
    """

    fault: str
    remedy: str | Callable[[str], str]
    accepts: Callable[[str], bool]
    has_login: bool = False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if getattr(found, "scope_id", None) else found


def is_address(text: str) -> bool:
    """Return whether a text is an IPv4 or IPv6 address of a machine, without a zone."""
    found = _address(text)
    return found is not None and not found.is_unspecified and not found.is_multicast


def is_node_address(text: str) -> bool:
    """Return whether a kubelet accepts the address (pkg/kubelet, validateNodeIP)."""
    found = _address(text)
    return is_address(text) and found is not None and not found.is_loopback and not found.is_link_local


def is_network(text: str) -> bool:
    """Return whether a text is a network with its prefix length and without host bits (RFC 4632)."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return "/" in text


def _network_remedy(text: str) -> str:
    try:
        near = str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        near = "address/prefix length, for example 10.244.0.0/16"
    return f"Write {near}."


def is_dns_name(text: str) -> bool:
    """Return whether a text is a host name (RFC 1123, section 2.1): its last label is no number."""
    labels = text.split(".")
    whole = len(text) <= 253 and all(map(LABEL.fullmatch, labels))
    return whole and not labels[-1].isdecimal()


def is_host(text: str) -> bool:
    """Return whether a text is a host name, or the address of a machine."""
    return is_dns_name(text) or is_address(text)


def is_object_name(text: str) -> bool:
    """Return whether a text is a name of a Kubernetes object: a host name in lower case; it may be a number."""
    return len(text) <= 253 and text == text.lower() and all(map(LABEL.fullmatch, text.split(".")))


def is_node_name(text: str) -> bool:
    """Return whether a text is a name of a node; it is also the value of a label, so at most 63 characters."""
    return len(text) <= 63 and is_object_name(text)


def is_host_port(text: str) -> bool:
    """Return whether kubeadm accepts the endpoint: a name in lower case or an address, and a port."""
    host, separator, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        found = _address(host[1:-1])
        good = found is not None and found.version == 6 and is_address(host[1:-1])
    else:
        good = ":" not in host and (is_address(host) or (is_dns_name(host) and is_object_name(host)))
    return bool(separator) and good and bool(re.fullmatch(r"[1-9][0-9]{0,4}", port)) and int(port) < 65536


def is_certificate_name(text: str) -> bool:
    """Return whether a text is a name of a certificate, also with a wildcard (RFC 6125, 6.4.3), or an address."""
    return is_dns_name(text.removeprefix("*.")) or is_address(text)


def is_kubeadm_san(text: str) -> bool:
    """Return whether kubeadm accepts a name of a certificate: in lower case (validation.ValidateCertSANs)."""
    return is_certificate_name(text) and text == text.lower()


def is_registry(text: str) -> bool:
    """Return whether a text is a registry with an optional port and path, without a scheme."""
    host, slash, path = text.partition("/")
    name, _, port = host.partition(":")
    good = is_host(name) and (":" not in host or is_host_port(f"{name.lower()}:{port}"))
    return good and (not slash or bool(IMAGE_PATH.fullmatch(path)))


def is_image(text: str) -> bool:
    """Return whether a text is an image's reference (distribution specification); tag and digest are optional."""
    rest, at, digest = text.partition("@")
    if at and not DIGEST.fullmatch(digest):
        return False
    head, _, last = rest.rpartition("/")
    last, colon, tag = last.partition(":")
    if colon and not TAG.fullmatch(tag):
        return False
    first, slash, path = f"{head}/{last}".lstrip("/").partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return is_registry(first) and bool(IMAGE_PATH.fullmatch(path))
    return bool(IMAGE_PATH.fullmatch(f"{head}/{last}".lstrip("/")))


def is_path(text: str) -> bool:
    """Return whether a text is an absolute path of a host."""
    parts = text.split("/")
    return text.startswith("/") and "\0" not in text and ".." not in parts and len(text.encode()) <= LONGEST_PATH


def is_url(text: str) -> bool:
    """Return whether a text is an http or https URL with a host and without a login."""
    try:
        found = urlsplit(text)
        port_is_good = found.port is None or found.port > 0
    except ValueError:
        return False
    host = found.hostname or ""
    return found.scheme in ("http", "https") and is_host(host) and found.username is None and port_is_good


_PROXY = re.compile(r"https?://(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@?[A-Za-z0-9.:[\]-]+/?", re.ASCII)
"""Characters of a URL with a login, a host and a port (RFC 3986, section 3.2). None of them ends a quoted text."""


def is_proxy(text: str) -> bool:
    """Return whether a text is the URL of a proxy: http or https, a login, a host and a port, and nothing else."""
    if not _PROXY.fullmatch(text):
        return False
    try:
        found = urlsplit(text)
        port_is_good = found.port is None or found.port > 0
    except ValueError:
        return False
    return is_host(found.hostname or "") and port_is_good and found.username != "" and not found.netloc.endswith(":")


def login_of(text: Any) -> tuple[str, str]:
    """Return the user and the password in a URL, encoded as there; empty without them."""
    given = str(text or "")
    user, _, password = (given.partition("://")[2] or given).rpartition("@")[0].partition(":")
    return user, password


def is_proxy_exception(text: str) -> bool:
    """Return whether a text is a host, a network, or a domain with a leading dot, as in NO_PROXY."""
    return is_host(text) or is_network(text) or (text.startswith(".") and is_dns_name(text[1:]))


def is_apt_uri(text: str) -> bool:
    """Return whether a text is a URI of an apt source (sources.list(5)), such as https, file or mirror+https."""
    try:
        found = urlsplit(text)
    except ValueError:
        return False
    scheme = found.scheme.rpartition("+")[2]
    if scheme in ("file", "copy", "cdrom", "mirror"):
        return bool(found.path.strip("/")) and " " not in text
    return scheme in ("http", "https", "ftp") and is_host(found.hostname or "") and " " not in text


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: bool(compiled.fullmatch(text))


FORMS: Mapping[str, Form] = {
    "address": Form("not an address", 'Write an address, for example "10.1.0.10".', is_address),
    "node_address": Form(
        "not an address that a kubelet accepts",
        'Write an address of the host, for example "10.1.0.10".',
        is_node_address,
    ),
    "network": Form("not a network", _network_remedy, is_network),
    "host": Form(
        "neither a host name nor an address", 'Write it without port and scheme, for example "a.example.org".', is_host
    ),
    "dns_name": Form("not a host name", 'Write a name of RFC 1123, for example "mirror.example.org".', is_dns_name),
    "host_port": Form("not host:port", 'Write it with its port, for example "cp.example.org:6443".', is_host_port),
    "node_name": Form(
        "not a name of a node", 'Use lower case letters, digits, "-" and ".", 63 characters at most.', is_node_name
    ),
    "object_name": Form("not a name of Kubernetes", 'Use lower case letters, digits, "-" and ".".', is_object_name),
    "path": Form("not an absolute path", 'Begin it with "/", and write it without "..".', is_path),
    "quantity": Form(
        "not a quantity",
        'Write a positive number with a suffix of Kubernetes, for example "10Gi".',
        lambda text: bool(QUANTITY.fullmatch(text)) and bool(re.search("[1-9]", text)),
    ),
    "image": Form("not an image reference", 'Write it as in "registry.k8s.io/pause:3.10".', is_image),
    "registry": Form(
        "not a registry", 'Write it without a scheme, for example "registry.example.org:5000/a".', is_registry
    ),
    "certificate_name": Form(
        "neither a name of a certificate nor an address", 'Write it as in "console.example.org".', is_certificate_name
    ),
    "kubeadm_san": Form(
        "neither a name of a certificate nor an address",
        'Write it in lower case, for example "cp.example.org".',
        is_kubeadm_san,
    ),
    "apt_uri": Form("not a URI of an apt source", 'Write it as in "https://deb.example.org/debian".', is_apt_uri),
    "url": Form("not a URL", "Write it with http:// or https://, and without a login.", is_url),
    "proxy": Form(
        "not a proxy", 'Write it with its scheme, as in "http://proxy.example.org:3128".', is_proxy, has_login=True
    ),
    "proxy_exception": Form(
        "neither a host, a network nor a domain",
        'Write it as in "registry.example.org", "10.0.0.0/8" or ".example.org".',
        is_proxy_exception,
    ),
    "socket": Form(
        "not a socket",
        'Write "unix://" and an absolute path.',
        lambda text: text.startswith("unix://") and is_path(text.removeprefix("unix://")),
    ),
    "interface": Form("not a network interface", "Write its name, 15 characters at most.", _matches(r"[^\s/:]{1,15}")),
    "duration": Form(
        "not a duration", 'Write it as Go does, for example "2h" or "90m".', lambda text: bool(DURATION.fullmatch(text))
    ),
    "aws_region": Form(
        "not a region of AWS", 'Write it as in "eu-central-1".', _matches(r"[a-z]{2}(-[a-z]+){1,3}-[0-9]{1,2}")
    ),
    "aws_zone": Form(
        "not an availability zone of AWS",
        'Write it as in "eu-central-1a" or "euc1-az1".',
        _matches(r"[a-z]{2}(-[a-z]+){1,3}-[0-9]{1,2}[a-z]|[a-z]{3,4}[0-9]{1,2}-az[0-9]{1,2}"),
    ),
    "aws_subnet": Form(
        "not a subnet of AWS",
        'Write it as in "subnet-0123456789abcdef0".',
        _matches(r"subnet-([0-9a-f]{8}|[0-9a-f]{17})"),
    ),
    "aws_access_point": Form(
        "not an access point of EFS",
        'Write it as in "fsap-0123456789abcdef0".',
        _matches(r"fsap-([0-9a-f]{8}|[0-9a-f]{17})"),
    ),
    "efs_clients": Form(
        "neither a security group nor a network",
        'Write "sg-..." or address/prefix length.',
        lambda text: bool(re.fullmatch(r"sg-([0-9a-f]{8}|[0-9a-f]{17})", text)) or is_network(text),
    ),
}
"""Forms by name."""


def wrong_form(site: Site) -> Iterator[Problem]:
    """Refuse a value, set or computed by a role, that does not have the form that its role declares."""
    said = {setting.name for setting in site.settings}
    computed = [Setting(name, value) for name, value in site.computed.items() if name not in said]
    for setting in (*site.settings, *computed):
        form = site.forms.get(setting.name)
        if form is not None and setting.resolved and setting.value is not None:
            # An empty text switches off what the role does with the variable.
            if setting.value == "" and site.computed.get(setting.name, "") == "":
                continue
            yield from _faults(setting, "", setting.value, form)


def _faults(setting: Setting, key: str, value: Any, form: Any) -> Iterator[Problem]:
    """Yield the parts of a value without their form. The rule of types refuses other types."""
    if isinstance(form, str):
        wanted = FORMS[form]
        if isinstance(value, (str, int)) and not wanted.accepts(str(value)):
            remedy = wanted.remedy if isinstance(wanted.remedy, str) else wanted.remedy(str(value))
            shown = "(hidden)" if wanted.has_login and "@" in str(value) else value
            yield problem(setting, wanted.fault, remedy, key=key, value=shown)
    elif isinstance(form, Sequence):
        for index, each in enumerate(value if isinstance(value, list) else []):
            yield from _faults(setting, f"{key}[{index}]", each, form[0])
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _faults(setting, f"{key}[{index}]", each, form)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if "(key)" in form:
                yield from _faults(setting, f"{key}.(key)", str(name), form["(key)"])
            found = form.get(str(name), form.get("(value)"))
            if found is not None and inner not in (None, ""):
                yield from _faults(setting, f"{key}.{name}", inner, found)


FORM_RULES = (wrong_form,)
