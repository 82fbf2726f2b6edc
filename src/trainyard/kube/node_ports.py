"""Node ports of Services. The API server gives each port to only one Service across all namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .api import Object


def taken_ports(services: Sequence[Object], wanted: Mapping[str, int], owner: str) -> list[str]:
    """Return one sentence for each wanted port that another Service holds.

    :param services: Services of all namespaces.
    :param wanted: variable that sets the port -> the port.
    :param owner: NAMESPACE/NAME of the Service that the ports are for; it may already hold them.
    """
    held = {port: name for each in services if (name := _name(each)) != owner for port in held_by(each)}
    return [
        f"The port {port} of the nodes ({variable}) is held by the Service {held[port]}. Set {variable} to another "
        "port, or remove that Service."
        for variable, port in wanted.items()
        if port in held
    ]


def held_by(service: Mapping[str, Any]) -> Iterator[int]:
    """Yield the node ports that a Service holds, including that of its health check."""
    spec = service.get("spec") or {}
    ports = [each.get("nodePort") for each in spec.get("ports") or []]
    yield from (int(port) for port in (*ports, spec.get("healthCheckNodePort")) if port)


def _name(service: Mapping[str, Any]) -> str:
    return f"{service['metadata']['namespace']}/{service['metadata']['name']}"
