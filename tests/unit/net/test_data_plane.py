"""service_probe: Calico's data plane, from the names of nftables' tables."""

from __future__ import annotations

import subprocess

import pytest
import service_probe

from trainyard.core.errors import CommandError


@pytest.mark.parametrize(
    ("output", "tables"),
    [
        ("table ip kube-proxy\ntable ip filter\ntable ip nat\n", []),
        ("", []),
        ("table ip filter\ntable ip calico\ntable ip6 calico\n", ["ip calico", "ip6 calico"]),
        ("table inet calico-of-others\n", []),
    ],
)
def test_tables_of_calico_are_its_nftables_data_plane(
    monkeypatch: pytest.MonkeyPatch, output: str, tables: list[str]
) -> None:
    done = subprocess.CompletedProcess([], 0, output, "")
    monkeypatch.setattr(service_probe, "run", lambda *_, **__: done)
    found = service_probe.probe_data_plane()
    assert (found["ok"], found["tables"]) == (not tables, tables)
    assert bool(found["error"]) == bool(tables)


def test_a_node_without_the_answer_is_not_good(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CommandError("nft is not installed.")

    monkeypatch.setattr(service_probe, "run", fail)
    assert service_probe.probe_data_plane() == {"ok": False, "tables": [], "error": "nft is not installed."}
