"""A host that a role refuses drops out of site.yml; it ends the run for nobody else, and the run says its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.playbooks.runs import ON_HOSTS, TOUCH, copy, play, stubs

# Several seconds for each run of the whole site.
pytestmark = pytest.mark.slow

REFUSE = """
- name: Refuse the host
  ansible.builtin.fail:
    msg: "its disk is full"
  when: "ansible_role_name ~ ' of ' ~ inventory_hostname in refused"
"""
ALL = {"m1", "cp1", "w1", "w2", "localhost"}
PROBED = {"cp1-probed", "w1-probed", "w2-probed"}
LATER = {
    "mirror of m1": ("base", "containerd", "control_plane", "network", "worker", "dashboard", "workloads"),
    "control_plane of cp1": ("network", "worker", "dashboard", "workloads"),
    "worker of w1": ("dashboard", "workloads"),
}
"""A role and the host that it refuses -> what comes later, and has other hosts or none."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As everywhere here, and the roles of hosts refuse what they are told to."""
    made = stubs(copy(tmp_path_factory.mktemp("checkout")))
    for role in ON_HOSTS:
        (made / "roles" / role / "tasks" / "main.yml").write_text(REFUSE + TOUCH % "", encoding="utf-8")
    return made


@pytest.mark.parametrize(("refused", "mode"), [(each, []) for each in LATER] + [("mirror of m1", ["--check"])])
def test_the_only_host_of_a_play_does_not_end_the_run(
    checkout: Path, tmp_path: Path, refused: str, mode: list[str]
) -> None:
    host = refused.rpartition(" ")[2]
    arguments = ("-e", f"site_hosts={','.join(ALL - {'w2'})}", "-e", json.dumps({"refused": [refused]}), *mode)
    status, touched, output = play(checkout, tmp_path, "site.yml", *arguments)
    assert status == 2 and f"fatal: [{host}]: FAILED!" in output and "its disk is full" in output, output
    assert all(f"TASK [{role} : Leave a file]" in output for role in LATER[refused]), output
    if not mode:
        assert f"localhost-missing={host}-left_out=0" in touched, output


def test_a_run_of_one_host_that_is_refused_looks_at_the_cluster(checkout: Path, tmp_path: Path) -> None:
    status, touched, output = play(
        checkout, tmp_path, "site.yml", "-e", "site_hosts=w1", "-e", json.dumps({"refused": ["base of w1"]})
    )
    assert status == 2 and {"localhost", "localhost-missing=w1-left_out=0"} <= touched, output
    assert "TASK [network : Leave a file]" in output


@pytest.mark.parametrize("arguments", [("--skip-tags=always",), ("--start-at-task=Leave a file",)])
def test_nothing_is_done_by_way_of_the_host_that_cannot_fail(
    checkout: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    _, touched, output = play(checkout, tmp_path, "site.yml", "-e", "refused=nothing", *arguments)
    assert {name.partition("-")[0] for name in touched} <= ALL and "placeholder]" not in output, output
