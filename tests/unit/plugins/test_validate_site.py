"""The first playbook of a site, run as a user runs it, against small inventories; one process shows many refusals."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

LIMIT = 60
"""Seconds after which a run counts as hung."""

HOSTS = """
all:
  children:
    cluster:
      children:
        control_plane: {hosts: {cp1: {ansible_host: 10.1.0.10}}}
        workers: {hosts: {w1: {ansible_host: 10.1.0.21}, w2: {ansible_host: 10.1.0.22}}}
"""

BAD_HOSTS = """
all:
  children:
    cluster:
      vars: {storage_claims: {training: 1Gi}}
      children:
        control_plane: {hosts: {cp1: {ansible_host: 10.1.0.10}, cp2: {ansible_host: 10.1.0.11}}}
        workers: {hosts: {cp2: , w1: {ansible_host: 10.1.0.10}, w2: {ansible_host: 10.244.3.4}}}
    mirror: {hosts: {w1: , m2: {ansible_host: 10.1.0.2}}}
    lab_hosts: {hosts: {m2: }}
"""

BAD_VARIABLES = """
kubernetes_pod_cdir: "10.1.0.0/16"
kubernets_version: "1.36.3"
kubernetes_version: "1.2.3"
kubernetes_pod_cidr: "10.244.0.0/16"
kubernetes_service_cidr: "10.244.128.0/20"
kubernetes_dns_ip: "10.96.0.10"
containerd_registry_mirrors: "https://mirror.example.org"
control_plane_ignore_preflight_errors: ["all"]
control_plane_endpoint: "{{ hostvars[groups['control_plane'][0]].ansible_host }}"
workloads_training: {workload: mnist_ps}
workloads_trainings:
  - workload: mnist_ps
    namespace: "jobset-system"
    train_steps: 0
    batch_size: 0
    learning_rate: -1
    chief: {replicas: 0}
    ps: 0
    worker: {replicas: 0, gpus: 1, limits: {memory: 1 GB}}
__kubernetes_internal: "not looked at"
ansible_pod_cdir: "not looked at"
somebodys_own: "not looked at"
"""


def validate(root: Path, inventory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the playbook with the interpreter that runs the tests."""
    program = Path(sys.executable).with_name("ansible-playbook")
    return subprocess.run(
        [str(program), "-i", str(inventory), str(root / "playbooks" / "_validate.yml"), *arguments],
        cwd=root,
        env={**os.environ, "ANSIBLE_CONFIG": str(root / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "10000"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def inventory(folder: Path, hosts: str, variables: str = "") -> Path:
    (folder / "hosts.yml").write_text(hosts)
    if variables:
        (folder / "group_vars" / "all").mkdir(parents=True)
        (folder / "group_vars" / "all" / "site.yml").write_text(variables)
    return folder


@pytest.fixture(scope="module")
def bad_hosts(root: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    variables = 'kubernetes_pod_cidr: "10.244.0.0/16"\nlab_subnet: "10.84.0.0/24"\n'
    return validate(root, inventory(tmp_path_factory.mktemp("hosts"), BAD_HOSTS, variables))


@pytest.fixture(scope="module")
def bad_variables(root: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    return validate(root, inventory(tmp_path_factory.mktemp("variables"), HOSTS, BAD_VARIABLES))


@pytest.mark.parametrize(
    "expected",
    [
        "group control_plane is 2 hosts (cp1, cp2): an even number",
        "host cp2 is in the groups control_plane and workers",
        "group mirror is 2 hosts (m2, w1): a site has one mirror or none",
        'address of the hosts cp1, w1 is "10.1.0.10": each host needs its own address',
        'host w2 is "10.244.3.4": inside kubernetes_pod_cidr "10.244.0.0/16"',
        "{'training': '1Gi'}: the controller, which creates the file system and the claims, does not have it",
        'host m2 is "10.1.0.2": not an address of lab_subnet "10.84.0.0/24"',
    ],
)
def test_hosts_refused(bad_hosts: subprocess.CompletedProcess[str], expected: str) -> None:
    assert bad_hosts.returncode != 0 and expected in bad_hosts.stdout + bad_hosts.stderr


@pytest.mark.parametrize(
    "expected",
    [
        'is "10.1.0.0/16": the role kubernetes has no such variable. Did you mean kubernetes_pod_cidr?',
        "looks misspelt. Did you mean kubernetes_version?",
        'is "1.2.3": the lock has only kubernetes',
        "site.yml:6, cp1, w1, w2)",
        'overlaps kubernetes_pod_cidr "10.244.0.0/16"',
        'is "10.96.0.10": outside kubernetes_service_cidr "10.244.128.0/20"',
        'is "https://mirror.example.org": not a dictionary',
        "all would hide the errors that matter",
        'is "10.1.0.10": not host:port',
        'is "jobset-system": the policies of a training would cut off',
        "Write it as an element of the list workloads_trainings",
        "workloads_trainings[0].batch_size",
        "workloads_trainings[0].learning_rate",
        "workloads_trainings[0].chief.replicas",
        "workloads_trainings[0].ps.replicas",
        "workloads_trainings[0].worker.replicas",
        "workloads_trainings[0].worker.limits.memory",
        "no node of this site has a GPU",
    ],
)
def test_variables_refused(bad_variables: subprocess.CompletedProcess[str], expected: str) -> None:
    assert bad_variables.returncode != 0
    assert expected in bad_variables.stdout + bad_variables.stderr


def test_what_is_not_ours_is_left_alone(bad_variables: subprocess.CompletedProcess[str]) -> None:
    assert "not looked at" not in bad_variables.stdout + bad_variables.stderr


def test_no_control_plane_and_a_slip_on_the_command_line(root: Path, tmp_path: Path) -> None:
    slips = "kubernetes_pod_cidrr=10.1.0.0/16 site_object=false site_host=w1 state=restarted"
    found = validate(root, inventory(tmp_path, "ungrouped: {hosts: {a: }}"), "-e", slips)
    names = "kubernetes_pod_cidr?", "site_objects?", "site_hosts?", "workloads_state "
    said = ["variable supply is missing", "group control_plane is empty", *(f"Did you mean {name}" for name in names)]
    assert found.returncode != 0 and [each for each in said if each not in found.stdout + found.stderr] == []


def test_good_inventory_passes_and_nothing_is_run(root: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    variables = (
        "supply: vendors\n"
        'kubernetes_pod_cidr: "{{ somebodys_own }}"\n'
        f"somebodys_own: \"{{{{ lookup('pipe', 'touch {trace}') }}}}\"\n"
        "kubernetes_version: \"{{ lookup('locked_version', 'kubernetes') }}\"\n"
        'kubernetes_dns_domain: "{{ ansible_facts.domain }}"\n'
    )
    found = validate(root, inventory(tmp_path, HOSTS, variables), "-v", "--check")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "3 hosts: no problem found." in found.stdout
    assert "changed=0" in found.stdout
    assert not trace.exists()


def test_versions_are_those_of_the_lock_that_the_site_names(root: Path, tmp_path: Path) -> None:
    (tmp_path / "own.yml").write_text("artefacts: {kubernetes: {version: v1.99.0}}\n")
    site = inventory(tmp_path, HOSTS, f"kubernetes_version: 1.36.3\nbundle_lock: \"{{{{ '{tmp_path}' }}}}/own.yml\"\n")
    assert 'is "1.36.3": the lock has only kubernetes 1.99.0' in validate(root, site).stdout
    assert "gone.yml cannot be read" in validate(root, site, "-e", "bundle_lock=/gone.yml").stdout


def test_a_template_is_resolved_for_each_host(root: Path, tmp_path: Path) -> None:
    """The first host's value is right, the second host's is not."""
    variables = (
        "supply: vendors\nkubernetes_node_name: \"{{ {'w2': 'W_2'}.get(inventory_hostname, inventory_hostname) }}\"\n"
    )
    found = validate(root, inventory(tmp_path, HOSTS, variables))
    assert found.returncode != 0
    assert 'w2) is "W_2": not a name of a node' in found.stdout + found.stderr


def test_time_for_500_hosts(root: Path, tmp_path: Path, record_property: pytest.RecordProperty) -> None:
    nodes = [f"node{i}: {{ansible_host: 192.168.{i // 200}.{i % 200 + 1}}}" for i in range(500)]
    groups = {"control_plane": nodes[:3], "workers": nodes[3:]}
    members = [f"    {group}: {{hosts: {{{', '.join(hosts)}}}}}" for group, hosts in groups.items()]
    hosts = "\n".join(["all:", "  children:", *members])
    networks = 'kubernetes_pod_cidr: "10.244.0.0/16"\nkubernetes_service_cidr: "10.96.0.0/16"\n'
    site = inventory(tmp_path, hosts, f"supply: vendors\n{networks}")
    (site / "host_vars").mkdir()
    for i in range(500):
        (site / "host_vars" / f"node{i}.yml").write_text(f'rack: "{i % 7}"\nkubernetes_dns_ip: "10.96.0.10"\n')
    start = time.monotonic()
    found = validate(root, site)
    seconds = time.monotonic() - start
    record_property("seconds", round(seconds, 2))
    print(f"\nvalidation of 500 hosts: {seconds:.2f} s")
    assert found.returncode == 0, found.stdout + found.stderr
