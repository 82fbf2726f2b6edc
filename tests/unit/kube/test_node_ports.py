"""Ports of the nodes that another Service holds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from trainyard.kube.api import Api
from trainyard.kube.nodes import taken_ports

OWNER = "trainyard-console/console"
WANTED = {"dashboard_node_port": 30443, "dashboard_tensorboard_node_port": 30444}


def service(name: str, *ports: int, namespace: str = "web", **spec: Any) -> dict[str, Any]:
    given = [{"port": 443, **({"nodePort": port} if port else {})} for port in ports]
    return {
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**({"ports": given} if ports else {}), **spec},
    }


OWN = service("console", 30443, 30444, namespace="trainyard-console")


@pytest.mark.parametrize(
    ("services", "said"),
    [
        ([], []),
        ([OWN], []),
        # Without a port of the nodes, without any port, and with others.
        ([service("shop", 0), service("outside", type="ExternalName"), service("other", 30500)], []),
        ([OWN, service("shop", 0, 30443)], ["(dashboard_node_port) is held by the Service web/shop"]),
        (
            [service("shop", 30444), service("mail", 30443)],
            [
                "The port 30443 of the nodes (dashboard_node_port) is held by the Service web/mail",
                "The port 30444 of the nodes (dashboard_tensorboard_node_port) is held by the Service web/shop",
            ],
        ),
        ([service("shop", 80, healthCheckNodePort=30444)], ["The port 30444 of the nodes"]),
        # Of the console's namespace or name, and another one all the same.
        ([service("other", 30443, namespace="trainyard-console")], ["by the Service trainyard-console/other"]),
        ([service("console", 30443, namespace="web")], ["by the Service web/console"]),
    ],
)  # fmt: skip
def test_who_holds_a_port(services: list[dict[str, Any]], said: list[str]) -> None:
    found = taken_ports(services, WANTED, OWNER)
    assert len(found) == len(said)
    assert all(each in sentence for each, sentence in zip(said, found, strict=True)), found


def test_services_of_all_namespaces_as_the_api_server_lists_them() -> None:
    objects = {
        f"/api/v1/namespaces/{each['metadata']['namespace']}/services/{each['metadata']['name']}": each
        for each in (OWN, service("shop", 30443))
    }
    assert len(taken_ports(Api(ApiServer(objects)).list("v1", "Service"), WANTED, OWNER)) == 1
