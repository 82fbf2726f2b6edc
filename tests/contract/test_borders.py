"""Tests of the allowed imports between packages, and of the Python version that each package must support."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from checkout import ROOT, read_yaml

PACKAGE = ROOT / "src" / "trainyard"
SENT = "ansible.module_utils.trainyard."

ALLOWED = {
    "core": set(),
    "host": {"core"},
    "net": {"core"},
    "gpu": {"core", "host"},
    "kubeadm": {"core", "host", "net"},
    "kube": {"core", "net"},
    "unmanaged": {"core", "kube"},
    "trainings": {"core", "kube", "project"},
    "why": {"core", "kube", "trainings"},
    "verify": {"core", "gpu", "kube", "net", "trainings", "unmanaged", "why"},
    "oci": {"core"},
    "bundle": {"core", "oci"},
    "lab": {"core"},
    "aws": {"core"},
    "controller": {"core"},
    "site_lock": {"core", "kube", "project"},
    "site": {"aws", "core", "host", "kube", "oci", "project", "trainings", "verify"},
    "drift": {"core", "kube", "project", "site", "site_lock", "trainings", "verify"},
    "schedule": {"core", "drift", "project", "site", "site_lock"},
    "cli": {"core", "drift", "kube", "project", "schedule", "site", "site_lock", "trainings", "verify", "why"},
    "console": {"core", "kube", "trainings", "why"},
}
"""Package -> packages whose modules it may import, in addition to its own."""

ON_HOSTS = ("core", "host", "net", "gpu", "kubeadm")
"""Packages that are sent to hosts of the cluster, which have Python 3.10 (Ubuntu 22.04) and its standard library."""

ON_OTHERS = ("oci", "bundle", "controller")
"""Packages that are sent to a builder or to the host of a schedule."""

OF_HOSTS = (
    "apt_packages", "containerd_images", "gpu_info", "host_files", "host_preflight", "kernel_settings", "kubeadm_init",
    "kubeadm_join", "kubeadm_reset", "kubeadm_state", "mount_unit", "node_files", "node_findings", "port_probe",
    "nvidia_host", "systemd_unit",
)  # fmt: skip
"""Modules that run on hosts of the cluster."""


def _imports(path: Path) -> set[str]:
    """Return the trainyard packages, and the other distributions, that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            parts = path.relative_to(PACKAGE).parts[:-1] if path.is_relative_to(PACKAGE) else ()
            base = [*parts[: len(parts) - node.level + 1], *(node.module or "").split(".")]
            found |= {"trainyard:" + base[0]} if base[0] else {f"trainyard:{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_every_package_has_its_rule() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"} == ALLOWED.keys()


def test_the_package_takes_nothing_of_itself_by_its_name() -> None:
    """The package has another name on hosts, and both must mean the same file."""
    for path in PACKAGE.rglob("*.py"):
        assert not [name for name in _imports(path) if "trainyard" in name.split(".")], path


@pytest.mark.parametrize("package", ON_HOSTS)
def test_hosts_need_nothing_but_python(package: str) -> None:
    # Ansible sends its own part of module_utils along.
    known = {*sys.stdlib_module_names, "ansible", ""}
    for path in (PACKAGE / package).rglob("*.py"):
        found = {name for name in _imports(path) if not name.startswith("trainyard:")}
        assert {name for name in found if name.split(".")[0] not in known} == set(), path
        assert {name for name in found if name.startswith("ansible") and ".module_utils" not in name} == set(), path


@pytest.mark.parametrize("module", OF_HOSTS)
def test_a_module_for_hosts_takes_only_what_they_may_have(module: str) -> None:
    taken = {name for name in _imports(ROOT / "library" / f"{module}.py") if name.startswith(SENT)}
    assert {name.removeprefix(SENT).split(".")[0] for name in taken} <= {*ON_HOSTS}


def test_images_of_trainings_have_no_part_of_the_package() -> None:
    """Pods of a training contain only `workloads`."""
    for path in (ROOT / "workloads").rglob("*.py"):
        assert not [name for name in _imports(path) if name.split(".")[0] == "trainyard"], path


def test_the_image_of_the_console_has_what_it_imports() -> None:
    entry = read_yaml(ROOT / "bundle.lock.yml")["artefacts"]["image_console"]["context"]
    folders = {name.removeprefix("app/trainyard/") for name in entry if name.startswith("app/trainyard/")}
    wanted = {"console"}
    while more := {below for package in wanted for below in ALLOWED[package]} - wanted - {"project"}:
        wanted |= more
    assert {folder for folder in folders if "/" not in folder and folder != "__init__.py"} == wanted


def test_the_console_starts_as_its_image_does() -> None:
    """The role names the program again, because a pod with a command of its own ignores later images' defaults."""
    template = (ROOT / "roles/dashboard/templates/console.yaml.j2").read_text(encoding="utf-8")
    image = (ROOT / "workloads/images/console/Containerfile").read_text(encoding="utf-8")
    (of_image,) = re.findall(r"^CMD \[(.*)\]$", image, re.MULTILINE)
    command = of_image.replace('"', "")
    assert f"command: [{command}]" in template
    assert (PACKAGE / "console" / "__main__.py").is_file() and of_image.endswith('"-m", "trainyard.console"')


@pytest.mark.parametrize(("package", "fits"), [("host", True), ("kube", False), ("trainings", False)])
def test_an_import_across_the_border_is_found(package: str, fits: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"from {SENT}{package}.x import y\n")
    assert ({name.removeprefix(SENT).split(".")[0] for name in _imports(path)} <= {*ON_HOSTS}) is fits


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_knows_only_those_below_it(package: str) -> None:
    for path in (PACKAGE / package).rglob("*.py"):
        known = {name.removeprefix("trainyard:") for name in _imports(path) if name.startswith("trainyard:")}
        assert known <= {package, *ALLOWED[package]}, path


def test_modules_take_the_package_by_the_path_that_ansible_gives_it() -> None:
    for path in (ROOT / "library").rglob("*.py"):
        assert not {name for name in _imports(path) if name.split(".")[0] == "trainyard"}, path


def test_packages_hold_a_docstring_and_nothing_else() -> None:
    """Ansible sends every package's `__init__.py` along, with everything that it imports."""
    for path in PACKAGE.rglob("__init__.py"):
        (only,) = ast.parse(path.read_text(encoding="utf-8")).body
        assert isinstance(only, ast.Expr), path


def test_programs_of_the_bundle_end_with_the_module() -> None:
    """The next run uses the same folders, so no program may continue there after its module was killed."""
    for path in (PACKAGE / "bundle").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.name == "build_program.py" or not re.search(r"core.*command|subprocess", text), path


@pytest.mark.parametrize("package", [*ON_HOSTS, *ON_OTHERS])
def test_code_for_hosts_is_read_by_their_python(package: str) -> None:
    for path in (PACKAGE / package).rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 10))
