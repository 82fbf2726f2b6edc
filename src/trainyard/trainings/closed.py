"""Networks that an import must not reach: cloud metadata, and the cluster's pods and Services."""

from __future__ import annotations

import ipaddress
import re

from ..core.errors import TrainyardError
from ..core.untrusted import at, line
from ..kube.api import Api, KubeError, Object

ALWAYS = (
    "169.254.0.0/16",  # link-local (RFC 3927), with the metadata of most clouds
    "fe80::/10",  # link-local (RFC 4291)
    "fd00:ec2::254/128",  # metadata of AWS
    "100.100.100.200/32",  # metadata of Alibaba Cloud
    "168.63.129.16/32",  # metadata of Azure
)
_CONFIGURED = re.compile(
    r"^\s{0,8}(?:podSubnet|serviceSubnet): *[\"']?([0-9a-fA-F.:/,]{1,200})[\"']?\s*$", re.MULTILINE
)
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(api: Api) -> tuple[str, ...]:
    """Return `ALWAYS` and kubeadm's networks of pods and Services.

    The latter are left out if the user may not read them.

    :raises KubeError: the cluster does not answer.
    """
    try:
        found = api.get("v1", "ConfigMap", "kubeadm-config", "kube-system")
    except KubeError as error:
        if error.status != 403:
            raise
        found = None
    said = at(found, "data", "ClusterConfiguration")
    values = ",".join(_CONFIGURED.findall(said)) if isinstance(said, str) else ""
    return (*ALWAYS, *(str(each) for each in map(_network, values.split(",")) if each))


def peers(host: str, closed: tuple[str, ...]) -> list[Object]:
    """Return the peers that a policy allows for a server: its address, or for a name all but the closed networks.

    A NetworkPolicy matches addresses only, and the addresses of a name may change.

    :param host: address or name of the server.
    :raises TrainyardError: the address is in a closed network.
    """
    shut = [each for each in map(_network, closed) if each]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return [_all_but("0.0.0.0/0", 4, shut), _all_but("::/0", 6, shut)]
    plain = getattr(address, "ipv4_mapped", None) or address
    for each in shut:
        if plain in each:
            raise TrainyardError(
                f"The address {line(host, 80)} of the data is in {each}, which imports must not reach.",
                remedy="Use a server outside the cluster.",
            )
    return [{"ipBlock": {"cidr": f"{address}/{address.max_prefixlen}"}}]


def _all_but(cidr: str, version: int, shut: list[_Network]) -> Object:
    return {"ipBlock": {"cidr": cidr, "except": [str(each) for each in shut if each.version == version]}}


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
