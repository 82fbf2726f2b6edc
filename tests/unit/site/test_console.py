"""Users, ports and certificate of the console, and hosts whose kubelets get certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.certificates import self_signed
from tests.unit.role_forms import ROLE_FORMS
from trainyard.site.console_rules import CONSOLE_RULES
from trainyard.site.forms import FORM_RULES
from trainyard.site.site_model import Setting, Site

CATALOGUE = {"mnist_ps": {"description": "MNIST", "kind": "training"}}
ALICE = {"name": "alice", "level": "operator", "namespaces": ["trainings"]}
DEFAULTS = {
    "dashboard_exposure": "cluster_ip",
    "dashboard_node_port": 30443,
    "dashboard_tensorboard_node_port": 30444,
    "dashboard_token_hours": 8,
    "dashboard_tls": "site_ca",
    "dashboard_certificate_file": "",
    "dashboard_key_file": "",
    "kubernetes_serving_certificates": True,
}


def refusals(*settings: Setting, address: str = "10.1.0.10") -> list[str]:
    groups = {"cluster": ["cp1"], "control_plane": ["cp1"]}
    site = Site(
        groups=groups,
        addresses={"cp1": address},
        settings=list(settings),
        defaults=DEFAULTS,
        catalogue=CATALOGUE,
        forms=ROLE_FORMS,
    )
    return [str(problem) for rule in (*FORM_RULES, *CONSOLE_RULES) for problem in rule(site)]


def users(*listed: Any) -> Setting:
    return Setting("dashboard_users", list(listed), ("cp1",))


def one(name: str, value: Any) -> Setting:
    return Setting(name, value, ("cp1",))


def test_sites_that_can_be() -> None:
    team = Setting("workloads_trainings", [{"workload": "mnist_ps", "namespace": "team-a"}], ("cp1",))
    for settings in (
        [],
        [users(ALICE, {"name": "bob", "level": "viewer", "namespaces": []})],
        [team, users({**ALICE, "namespaces": ["team-a", "trainings"]})],
        [one("storage_namespace", "team-b"), users({**ALICE, "namespaces": ["team-b"]})],
        [one("dashboard_token_hours", 24), one("dashboard_exposure", "node_port")],
        # Not used, so not looked at.
        [one("dashboard_node_port", 8443)],
        [one("dashboard_allowed_cidrs", ["10.1.0.0/16", "fd00::/8"])],
        [one("dashboard_image_registries", ["registry.example.org:5000/team", "localhost/trainyard", "r"])],
    ):
        assert refusals(*settings) == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ([users({**ALICE, "name": "system:admin"})], "names with system: are reserved by Kubernetes"),
        ([users({**ALICE, "name": "Alice"})], '[0].name (cp1) is "Alice": not a valid user name'),
        ([users({**ALICE, "name": "a" * 41})], "not a valid user name"),
        ([users({**ALICE, "name": "a b"})], "not a valid user name"),
        ([users(ALICE, {**ALICE, "level": "viewer"})], 'is "alice": listed twice'),
        (
            [users({**ALICE, "namespaces": ["kube-system"]})],
            'namespaces (cp1) is "kube-system": no training of the site is in that namespace; there are trainings',
        ),
        ([one("dashboard_token_hours", 25)], "a login is valid for 1 to 24 hours"),
        ([one("dashboard_token_hours", 0)], "a login is valid for 1 to 24 hours"),
        (
            [one("dashboard_exposure", "node_port"), one("dashboard_node_port", 443)],
            "is 443: a node port is from 30000 to 32767",
        ),
        (
            [one("dashboard_exposure", "node_port"), one("dashboard_tensorboard_node_port", 30443)],
            "is 30443: used by dashboard_node_port",
        ),
        ([one("dashboard_allowed_cidrs", ["10.1.0.5/16"])], '[0] (cp1) is "10.1.0.5/16": not a network'),
        ([one("dashboard_image_registries", ["a", "b' || true"])], '[1] (cp1) is "b\' || true": not a registry'),
        ([one("dashboard_image_registries", ["https://a"])], "not a registry"),
        ([one("dashboard_image_registries", ["a/"])], "not a registry"),
        ([one("dashboard_tls", "provided")], "no such file, but dashboard_tls: provided needs it"),
    ],
)
def test_sites_that_cannot_be(settings: list[Setting], told: str) -> None:
    assert any(told in each for each in refusals(*settings)), refusals(*settings)


@pytest.mark.parametrize(
    ("days", "name", "names", "told"),
    [
        ((-1, 20), "console.example.org", ["console.example.org"], ""),
        ((-1, 20), "*.example.org", ["console.example.org"], ""),
        ((-1, 20), "console.example.org", ["other.example.org"], "it is not for other.example.org"),
        ((-9, -1), "console.example.org", ["console.example.org"], "its certificate expired on"),
        # Without names of its own: those of the control plane.
        ((-1, 20), "console.example.org", None, "it is not for 10.1.0.10"),
    ],
)
def test_a_certificate_of_the_site(
    tmp_path: Path, days: tuple[int, int], name: str, names: list[str] | None, told: str
) -> None:
    certificate, key = self_signed(days=days, name=name)
    (tmp_path / "crt").write_text(certificate)
    (tmp_path / "key").write_text(key)
    settings = [
        one("dashboard_tls", "provided"),
        one("dashboard_certificate_file", str(tmp_path / "crt")),
        one("dashboard_key_file", str(tmp_path / "key")),
        *([one("dashboard_names", names)] if names else []),
    ]
    found = refusals(*settings)
    assert bool(found) == bool(told) and all(told in each for each in found), found


def test_a_file_that_is_no_certificate(tmp_path: Path) -> None:
    (tmp_path / "crt").write_text("nothing")
    settings = [one("dashboard_tls", "provided"), one("dashboard_key_file", str(tmp_path / "crt"))]
    found = refusals(*settings, one("dashboard_certificate_file", str(tmp_path / "crt")))
    assert any("not a certificate in PEM" in each for each in found)


@pytest.mark.parametrize(
    ("settings", "address", "refused"),
    [
        ([], "cp1.example.org", True),
        ([], "10.1.0.10", False),
        ([one("kubernetes_node_ip", "10.1.0.10")], "cp1.example.org", False),
        ([one("kubernetes_serving_certificates", False)], "cp1.example.org", False),
    ],
)
def test_hosts_that_are_reached_by_name(settings: list[Setting], address: str, refused: bool) -> None:
    found = refusals(*settings, address=address)
    assert [each for each in found if "Set kubernetes_node_ip of the host" in each] == found
    assert bool(found) is refused
