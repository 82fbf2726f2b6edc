"""Console, use of nodes and kubelets' certificates: the checks over small API objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.kube.requests_of_kubelets import pem, request
from tests.unit.verify.views import site_checks
from trainyard.kube.certificate_requests import KubeletHost
from trainyard.unmanaged.foreign import World
from trainyard.verify import access_checks
from trainyard.verify.access_checks import Access, ConsoleSeen
from trainyard.verify.cluster_checks import Expected
from trainyard.verify.observation import Unread
from trainyard.verify.verdict import FAIL, PASS, UNKNOWN

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
NODES = ["cp1", "w1"]
SOUND = {"kubelet_certificate": {"ok": True, "ends": "2027-11-21T12:00:00+00:00"}}


def seen(**changes: Any) -> Access:
    values = {"serving": True, "requests": [], "world": World(), "usage": NODES, "console": ConsoleSeen("https://a:1")}
    return Access(**{**values, **changes})


def results(found: Access, **changes: Any) -> dict[str, tuple[str, str]]:
    settings = {"console": {"name": "a"}, "usage": True, "probes": {"cp1": SOUND, "w1": SOUND}, **changes}
    expected = Expected(nodes=NODES, kubelet_version="1", containerd_version="2", **settings)
    names = ("kubelet_certificates", "usage", "console")
    return {each.name: (each.result, each.detail) for each in site_checks(expected, None, found, names)}


def test_a_sound_site() -> None:
    found = results(seen())
    assert {name: result for name, (result, _) in found.items()} == dict.fromkeys(
        ("kubelet_certificates", "usage", "console"), PASS
    )


@pytest.mark.parametrize(
    ("changes", "check", "result", "detail"),
    [
        ({"usage": ["cp1"]}, "usage", FAIL, "the resource usage of w1 is unknown"),
        ({"usage": Unread("forbidden")}, "usage", UNKNOWN, "forbidden"),
        ({"console": ConsoleSeen(trouble="its pod is not ready")}, "console", FAIL, "its pod is not ready"),
        ({"console": Unread("forbidden")}, "console", UNKNOWN, "forbidden"),
    ],
)
def test_what_is_wrong(changes: dict[str, Any], check: str, result: str, detail: str) -> None:
    assert results(seen(**changes))[check] == (result, detail)


@pytest.mark.parametrize(
    ("finding", "result", "detail"),
    [
        (
            {"kubelet_certificate": {"ok": False, "error": "certificate refused: expired"}},
            FAIL,
            "w1: certificate refused",
        ),
        ({}, UNKNOWN, "not probed: w1"),
        ({"unreachable": True}, UNKNOWN, "not probed: w1"),
    ],
)
def test_kubelet_certificates(finding: dict[str, Any], result: str, detail: str) -> None:
    found = results(seen(), probes={"cp1": SOUND, "w1": finding})["kubelet_certificates"]
    assert found[0] == result and detail in found[1]


def test_a_cluster_without_serving_certificates_is_warned_and_not_judged() -> None:
    found = results(seen(serving=False, usage=[]))
    assert "usage" not in found and "kubelet_certificates" not in found
    told = access_checks.access_warnings(seen(serving=False), {}, {}, NOW)
    assert len(told) == 1 and "metrics-server is left out" in told[0]


def test_what_is_not_asked_for() -> None:
    assert results(seen(), console={}, usage=False).keys() == {"kubelet_certificates"}


def test_a_check_run_may_have_no_console_yet() -> None:
    missing = seen(console=ConsoleSeen(trouble="this cluster has no console"))
    assert results(missing, planning=True)["console"] == (UNKNOWN, "this cluster has no console")


def test_certificates_that_end_soon_and_requests_that_wait() -> None:
    soon = {"kubelet_certificate": {"ok": True, "ends": "2026-12-01T00:00:00+00:00"}}
    found = seen(
        requests=[request("csr-x", body=pem(addresses=("10.9.9.9",))), request("csr-y")],
        console=ConsoleSeen("https://a:1", datetime(2026, 12, 20, tzinfo=UTC)),
    )
    hosts = {"worker1": KubeletHost.of(["worker1"], ["10.1.0.21"])}
    assert access_checks.access_warnings(found, {"cp1": SOUND, "w1": soon}, hosts, NOW) == [
        "the request csr-x of the kubelet of worker1 is pending: it asks for 10.9.9.9, which the inventory does not "
        "give worker1",
        "the request csr-y of the kubelet of worker1 is pending: the next run of site.yml approves it",
        "the certificate of console expires on 2026-12-20: run site.yml, which renews it",
        "the certificate of kubelet w1 expires on 2026-12-01: run site.yml, which renews it",
    ]


def test_a_certificate_that_the_site_provides_is_renewed_by_nobody_but_its_people() -> None:
    soon = {"kubelet_certificate": {"ok": True, "ends": "2026-12-01T00:00:00+00:00"}}
    found = seen(console=ConsoleSeen("https://a:1", datetime(2026, 12, 20, tzinfo=UTC)))
    assert access_checks.access_warnings(found, {"w1": soon}, {}, NOW, provided="/etc/ssl/console.crt") == [
        "the certificate of console expires on 2026-12-20: the site provides it, so it is not renewed; put a new one "
        "into /etc/ssl/console.crt (dashboard_certificate_file), its key into dashboard_key_file, and run site.yml",
        "the certificate of kubelet w1 expires on 2026-12-01: run site.yml, which renews it",
    ]
