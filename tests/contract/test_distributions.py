"""Tests of the files `roles/*/vars/<distribution>.yml`: the packages and sources of each supported system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template
from checkout import ROLES, Role, read_yaml, role_id

OLDER_KEY = "EB693B3035CD5710E231E123A4B469963BF863CC"
NEWER_KEY = "02182E60104FCDC26EAE1B8597A5D4CB8793F200"
VALIDATE = ["dockerd", "--validate", "--config-file=%s"]

SYSTEMS: dict[str, tuple[str, str, str, str, list[str], list[str], str]] = {
    "debian-12": ("Debian", "bookworm", "debian12", OLDER_KEY, ["docker.io"], [], "nvidia-kernel-open-dkms=580.*"),
    "debian-13": (
        *("Debian", "trixie", "debian13", NEWER_KEY),
        *(["docker.io", "docker-cli", "docker-buildx"], VALIDATE, "nvidia-kernel-open-dkms=580.*"),
    ),
    "ubuntu-22.04": (
        *("Ubuntu", "jammy", "ubuntu2204", OLDER_KEY),
        *(["docker.io", "docker-buildx"], VALIDATE, "nvidia-dkms-580-open=580.*"),
    ),
    "ubuntu-24.04": (
        *("Ubuntu", "noble", "ubuntu2404", OLDER_KEY),
        *(["docker.io", "docker-buildx"], VALIDATE, "nvidia-dkms-580-open=580.*"),
    ),
}
"""System -> distribution, code name, NVIDIA's repository and key, packages and validation of Docker, a driver's."""


LOOKUP = "lookup('ansible.builtin.first_found', {'files': %s, 'paths': [role_path ~ '/vars']})"
ONLY_SOME = {"bundle", "lab", "mirror", "reprovision"}
"""Roles for some systems only: those of builders, of the lab, and those with a Python that the locks have."""

FILE = {
    "base": "{{ __base_system_file }}",
    **{role: "{{ " + LOOKUP % f"__{role}_system_files" + " }}" for role in ("docker", "nvidia_driver")},
}
"""Role -> the file that its tasks load."""


@pytest.fixture(autouse=True, scope="module")
def _plugins() -> None:
    init_plugin_loader()


def rendered(root: Path, role: str, system: str, expression: str) -> Any:
    """Return the value of a role's variable on a host with this system, after its most specific file was loaded."""
    loader = DataLoader()
    version = system.partition("-")[2]
    facts = {"distribution": SYSTEMS[system][0], "distribution_version": version, "distribution_major_version": version}
    known: dict[str, Any] = {"ansible_facts": facts, "role_path": str(root / "roles" / role), "supply": "mirror"}
    known |= {"__base_preflight": {"host": {"system": system}}}
    for file in ("vars/main.yml", "defaults/main.yml"):
        known |= loader.load_from_file(str(root / "roles" / role / file), trusted_as_template=True)
    known |= {"nvidia_driver_branch": "580", "nvidia_driver_version": "", "nvidia_driver_source": "nvidia"}
    path = Templar(loader=loader, variables=known).template(trust_as_template(FILE[role]))
    known |= loader.load_from_file(str(path), trusted_as_template=True)
    return Templar(loader=loader, variables=known).template(trust_as_template("{{ " + expression + " }}"))


def test_tasks_load_these_files(root: Path) -> None:
    tasks = {"base": "preflight", "docker": "install", "nvidia_driver": "preflight"}
    for role, name in tasks.items():
        text = (root / f"roles/{role}/tasks/{name}.yml").read_text(encoding="utf-8")
        assert f'include_vars: "{FILE[role]}"' in text


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_system_has_its_packages_and_sources(root: Path, system: str) -> None:
    _, _, repository, key, packages, validate, driver = SYSTEMS[system]
    source = rendered(root, "base", system, "__base_driver_source")
    assert source["uris"][0].endswith(f"/repos/{repository}/x86_64/") and source["fingerprint"] == key
    assert rendered(root, "docker", system, "__docker_packages") == packages
    assert rendered(root, "docker", system, "__docker_validate") == validate
    assert rendered(root, "nvidia_driver", system, "__nvidia_driver_packages")[0] == driver


def test_the_files_are_the_supported_systems(root: Path) -> None:
    assert rendered(root, "base", "debian-13", "__base_supported_systems")["vendors"] == sorted(SYSTEMS)


@pytest.mark.parametrize("role", [role for role in ROLES if role.name not in ONLY_SOME], ids=role_id)
def test_the_metadata_of_a_role_names_each_system(role: Role) -> None:
    platforms = read_yaml(role.path / "meta" / "main.yml")["galaxy_info"]["platforms"]
    named = {(each["name"], version) for each in platforms for version in each["versions"]}
    assert named == {(distribution, code) for distribution, code, *_ in SYSTEMS.values()}
