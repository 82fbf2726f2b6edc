"""Tests that the rows of the zoo are complete, and that the page of hosts matches them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from checkout import ROOT, load

from tests.zoo.rows import HOSTS, KINDS, REFUSED, STATES, WORKS, Row, Trait, rows, traits
from trainyard.host.preflight_checks import CHECKS

ROWS = rows()

ELSEWHERE = {
    "cni_unknown": "tests/unit/site/test_cni_folder.py",
    "cni_files": "tests/unit/site/test_cni_folder.py",
    "firewall_address": "tests/unit/host/test_firewalls.py",
    "root": "tests/unit/host/test_facts.py",
    "sudo": "tests/unit/playbooks/test_sudo.py",
    "systemd": "tests/unit/host/test_facts.py",
    "system": "tests/unit/host/test_facts.py",
    "memory": "tests/unit/host/test_facts.py",
    "cpus": "tests/unit/host/test_facts.py",
    "space": "tests/unit/host/test_facts.py",
    "cgroup": "tests/unit/host/test_facts.py",
    "other_cluster": "tests/unit/host/test_membership.py",
    "other_control_plane": "tests/unit/playbooks/test_foreign_hosts.py",
    "kernel_feature": "tests/unit/host/test_kernel.py",
    "kernel_parameter": "tests/unit/host/test_kernel.py",
    "package_source": "tests/unit/playbooks/test_check_hosts.py",
    "endpoint": "tests/unit/playbooks/test_endpoint.py",
    "forward_drop_legacy": "tests/unit/host/test_forwarding.py",
    "gpu_absent": "tests/unit/host/test_nvidia.py",
    "gpu_too_new": "tests/unit/host/test_nvidia.py",
    "gpu_too_old": "tests/unit/host/test_nvidia.py",
    "gpu_modules": "tests/unit/host/test_nvidia.py",
    "driver_of_run_file": "tests/unit/host/test_nvidia.py",
    "secure_boot": "tests/unit/host/test_nvidia.py",
    "nvswitch": "tests/unit/host/test_nvswitch.py",
    "gpu_driver_offered": "tests/unit/playbooks/test_driver_role.py",
    "gpu_driver_absent": "tests/unit/playbooks/test_gpu_site.py",
    "gpu_not_shown": "tests/unit/playbooks/test_gpu_roles.py",
    "gpu_driver": "tests/unit/playbooks/test_gpu_site.py",
    "check_failed": "tests/unit/playbooks/test_sudo.py",
    "first_boot": "tests/unit/host/test_first_boot.py",
}
"""Checks that no row of the zoo has yet -> the test that provokes the refusal."""


def _program() -> Any:
    return load(ROOT / "tools" / "hosts.py")


def test_the_page_of_hosts_is_current() -> None:
    program = _program()
    assert program.TARGET.read_text(encoding="utf-8") == program.render(ROWS, traits()), "run `python3 tools/hosts.py`"


def test_each_check_is_provoked_by_a_row_or_a_test() -> None:
    provoked = {reason.code for row in ROWS for reason in row.reasons}
    assert provoked | ELSEWHERE.keys() == CHECKS.keys()
    assert not provoked & ELSEWHERE.keys()
    for path in ELSEWHERE.values():
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_complete(row: Row) -> None:
    assert row.kind in KINDS and row.expected in (WORKS, REFUSED)
    assert row.limits, "name what the imitation cannot show"
    assert bool(row.reasons) == (row.expected == REFUSED)
    assert bool(row.files or row.machine != "x86_64") == (row.kind == "tree")
    for reason in row.reasons:
        assert reason.code in CHECKS and reason.cause and reason.remedy
        re.compile(reason.cause), re.compile(reason.remedy)


def test_a_machine_has_a_scenario() -> None:
    prepared = {line.strip() for path in ROOT.glob("molecule/*/hosts.yml") for line in path.read_text().splitlines()}
    assert {f"zoo_row: {row.name}" for row in ROWS if row.kind == "machine"} <= prepared


def test_rows_have_a_host_name() -> None:
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{1,30}", path.stem) for path in HOSTS.glob("*"))


@pytest.mark.parametrize("trait", traits(), ids=lambda trait: trait.trait)
def test_a_trait_has_a_proof_that_exists(trait: Trait) -> None:
    assert trait.state in STATES and trait.how
    assert trait.proof or trait.state in ("open", "unproven")
    assert not trait.proof or trait.proof in {row.name for row in ROWS} or (ROOT / trait.proof).exists()


def test_each_defect_of_the_review_has_a_row() -> None:
    assert {trait.defect for trait in traits()} - {""} == {f"D{number}" for number in range(1, 31)}
