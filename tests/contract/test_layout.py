"""Tests of the checkout as a whole: sizes, places, locks, and configurations that must agree."""

from __future__ import annotations

import configparser
import importlib.metadata
import json
import re
import subprocess
from pathlib import Path

import ansible_collections
import pytest
import yaml
from checkout import ROOT, read_yaml

LIMITS = (
    ("roles/*/tasks/**/*.yml", 100),
    ("roles/*/handlers/*.yml", 100),
    ("roles/*/defaults/*.yml", 150),
    ("roles/*/templates/**/*.*", 150),
    ("library/*.py", 300),
    ("src/trainyard/**/*.py", 400),
    ("plugins/**/*.py", 400),
    ("playbooks/*.yml", 60),
    ("tests/**/*.py", 200),
    ("workloads/**/*.py", 400),
)
"""Maximum number of lines by kind of file."""

REASON = re.compile(r"[Ll]onger than (?:usual|the others|its limit)")
"""A comment with these words and the reason exempts its file from the limit."""

TOP = {
    ".ci",
    ".config",
    "docs",
    "inventories",
    "library",
    "molecule",
    "playbooks",
    "plugins",
    "roles",
    "src",
    "tests",
    "tools",
    "workloads",
}
COLLECTION = re.compile(r"\b(amazon\.aws|community\.[a-z_]+|kubernetes\.core|containers\.podman|ansible\.posix)\.[a-z]")
LOCKS = ("requirements*.in", "requirements*.txt", "**/go.mod", "**/go.sum", "**/package-lock.json")
PATHS = ("library", "module_utils", "roles_path", "action_plugins", "lookup_plugins", "filter_plugins")


def _files(pattern: str) -> list[Path]:
    # The environment is in a hidden folder, and has ten times as many files as the project.
    anywhere = pattern.startswith("**/")
    folders = [each for each in ROOT.iterdir() if each.is_dir() and each.name[0] != "."] if anywhere else [ROOT]
    found = (path for folder in folders for path in folder.glob(pattern))
    return [path for path in sorted(found) if path.is_file() and not _ignored(path)]


def _ignored(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return any(part.startswith(".") or part == "__pycache__" for part in parts[:-1])


@pytest.mark.parametrize(("pattern", "limit"), LIMITS)
def test_sizes(pattern: str, limit: int) -> None:
    long = []
    for path in _files(pattern):
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > limit and not REASON.search(text):
            long.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {limit}")
    assert not long, "\n".join(long)


def test_top_level_holds_nothing_unexpected() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    folders = {path.split("/")[0] for path in listed.stdout.splitlines() if "/" in path}
    assert folders <= TOP


def test_yaml_files_have_one_suffix_and_snake_case_names() -> None:
    for folder in ("roles", "playbooks", "inventories", "molecule"):
        for path in _files(f"{folder}/**/*"):
            if "/files/" in str(path) or "/templates/" in str(path):
                continue
            assert path.suffix != ".yaml", path
            # Files of a distribution have its name: `debian-13.yml`.
            if path.suffix == ".yml" and path.parent.name != "vars":
                assert re.fullmatch(r"[a-z0-9_.]+", path.name), path


def test_no_folder_is_below_library() -> None:
    """Ansible's loader searches two levels below a module path, and would treat the utilities as modules."""
    assert not [path for path in (ROOT / "library").iterdir() if path.is_dir() and path.name != "__pycache__"]


@pytest.mark.parametrize("pattern", LOCKS)
def test_locks_name_no_server(pattern: str) -> None:
    """A lock pins names, versions and hashes; the source is a setting of the machine."""
    for path in _files(pattern):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            place = f"{path.relative_to(ROOT)}:{number}: {line}"
            assert not re.search(r"https?://", line), place
            assert not re.match(r"\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b", line), place


def test_python_lock_pins_everything_by_hash() -> None:
    for name in ("requirements.txt", "requirements-test.txt", "requirements-lock.txt"):
        entries = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
        for line in entries:
            if line.strip() and not line.lstrip().startswith("#"):
                assert re.match(r"[a-zA-Z0-9_.\[\]-]+==\S+\s+.*--hash=sha256:[0-9a-f]{64}", line), line[:80]


def test_the_two_python_locks_agree() -> None:
    pins = {}
    for name in ("requirements.txt", "requirements-test.txt"):
        found = re.findall(r"^([a-z0-9_.-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        for package, version in found:
            assert pins.setdefault(package, version) == version, package


def test_collections_are_those_of_the_ansible_package() -> None:
    wanted = {entry["name"]: entry["version"] for entry in read_yaml(ROOT / "requirements.yml")["collections"]}
    for name, version in wanted.items():
        found = None
        for place in ansible_collections.__path__:
            manifest = Path(place, *name.split("."), "MANIFEST.json")
            if manifest.exists():
                found = json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"]
                break
        assert found == version, f"{name} of ansible {importlib.metadata.version('ansible')}"


def test_the_used_collections_are_those_that_are_listed() -> None:
    wanted = {entry["name"] for entry in read_yaml(ROOT / "requirements.yml")["collections"]}
    used = set()
    for folder in ("roles", "playbooks", "molecule", "inventories"):
        for path in _files(f"{folder}/**/*.yml"):
            text = path.read_text(encoding="utf-8")
            used |= set(COLLECTION.findall(text))
    assert used == wanted


def _molecule_defaults() -> dict[Path, dict[str, str]]:
    """Return the [defaults] that molecule's configurations pass to Ansible, if they have any."""
    found = {}
    patterns = ("molecule/_shared/*.yml", "molecule/*/molecule.yml", ".config/molecule/*.yml")
    for path in [path for pattern in patterns for path in ROOT.glob(pattern)]:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            continue
        options = (document.get("provisioner") or {}).get("config_options") or {}
        options = options or ((document.get("ansible") or {}).get("cfg") or {})
        if options.get("defaults"):
            found[path] = options["defaults"]
    return found


def test_molecule_and_ansible_cfg_name_the_same_paths() -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "ansible.cfg")
    ours = parser["defaults"]
    for name in PATHS:
        assert (ROOT / ours[name]).is_dir(), f"ansible.cfg: {name}"
    shared = _molecule_defaults()
    assert shared or not (ROOT / "molecule" / "_shared").exists(), "molecule/_shared names no paths"
    for path, defaults in shared.items():
        for name in PATHS:
            assert name in defaults, f"{path.relative_to(ROOT)} lacks {name}"
            place = f"{path.relative_to(ROOT)}: {name}"
            assert re.fullmatch(rf"(.*/)?{re.escape(ours[name])}/?", str(defaults[name])), place
