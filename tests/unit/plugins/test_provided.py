"""Facts that roles provide reach their readers without a list of roles anywhere."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from checkout import ROLES, Role, read_yaml, role_id

from plugins.lookup import provided
from trainyard.site import role_facts as collected


def look(*kinds: str, **variables: object) -> list:
    loader = DataLoader()
    return provided.LookupModule(loader=loader, templar=Templar(loader, variables=variables)).run(
        list(kinds), variables
    )


def test_a_new_role_is_collected(tmp_path, monkeypatch) -> None:
    (tmp_path / "toys/meta").mkdir(parents=True)
    (tmp_path / "toys/meta/provides.yml").write_text(
        "ports: [{port: 98, variable: toys_port, group: cluster, program: toyd}]\nnamespaces: [toys]\n"
    )
    monkeypatch.setattr(collected, "ROLES", tmp_path)
    assert [(port["port"], port["program"]) for (port,) in look("ports", toys_port="99")] == [(99, "toyd")]
    assert [port["port"] for (port,) in look("ports")] == [98]
    assert look("namespaces", "reset_paths", toys_port=1) == [["toys"]]


@pytest.mark.parametrize("role", ROLES, ids=role_id)
def test_a_role_provides_only_known_kinds(role: Role) -> None:
    kinds = set(read_yaml(role.path / "meta" / "provides.yml") or {})
    assert kinds <= {"ports", "files", "kernel_features", "namespaces", "reset_paths", "reset_interfaces", "drift"}


def test_facts_of_the_present_roles() -> None:
    ports = [(port["group"], port["port"], port["program"]) for found in look("ports") for port in found]
    listening = {port for group, port, program in ports if group == "cluster" and program}
    assert listening == {9099, 10248, 10249, 10250, 10256}
    assert {("mirror", 443, "nginx"), ("mirror", 5000, "nginx"), ("cluster", 4789, "")} <= set(ports)
    namespaces = {name for found in look("namespaces") for name in found}
    assert namespaces == {"kube-system", "jobset-system", "trainyard-console", "trainyard-system"}
    assert {"cluster": ["/etc/containerd/config.toml", "/etc/crictl.yaml"]} in look("files")
    assert look("kernel_features")[0] == ["overlay"]
    assert ["vxlan.calico"] in look("reset_interfaces")
