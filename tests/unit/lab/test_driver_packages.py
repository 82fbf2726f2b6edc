"""The packages of the scenario gpu_driver, as apt takes them with and without what the role says of their versions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WANTED = ("nvidia-kernel-open-dkms=580.95.*", "nvidia-driver-cuda=580.95.*")
DKMS = "Package: dkms\nVersion: 3\nArchitecture: amd64\nMaintainer: test\nDescription: stands for Debian's\n"


@pytest.fixture(scope="module")
def published(made_gpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository, in `packages`, and in `key.asc` the key that signs it."""
    folder = tmp_path_factory.mktemp("driver")
    keyring = folder / "keyring"
    keyring.mkdir(mode=0o700)
    gpg = ["gpg", f"--homedir={keyring}", "--batch", "--quiet"]
    _run(*gpg, "--passphrase=", "--quick-generate-key", "test", "ed25519", "sign", "never")
    _run(*gpg, "--armor", f"--output={folder / 'key.asc'}", "--export")
    for path in ("debian", "packages", "tree/DEBIAN"):
        (folder / path).mkdir(parents=True)
    (folder / "tree/DEBIAN/control").write_text(DKMS, encoding="utf-8")
    _run("dpkg-deb", "--root-owner-group", "--build", str(folder / "tree"), str(folder / "debian"))
    program = str(ROOT / "molecule/gpu_driver/packages.py")
    _run(sys.executable, program, str(made_gpus), str(folder / "debian"), str(keyring), str(folder / "packages"))
    return folder


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=120, capture_output=True)


def install(published: Path, root: Path, preferences: str) -> tuple[int, set[str]]:
    """Status of apt on a host with nothing installed, and what it would install, as NAME VERSION."""
    for path in ("lists/partial", "archives/partial", "log"):
        (root / path).mkdir(parents=True)
    (root / "status").touch()
    (root / "preferences").write_text(preferences, encoding="utf-8")
    source = f"deb [signed-by={published / 'key.asc'}] file:{published / 'packages'} ./\n"
    (root / "sources.list").write_text(source, encoding="utf-8")
    options = {
        "Dir::Etc::sourcelist": root / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": root / "preferences",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State::status": root / "status",
        "Dir::State::lists": root / "lists",
        "Dir::Cache": root,
        "Dir::Log": root / "log",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
        "APT::Update::Error-Mode": "any",
    }
    apt = ["apt-get", *(f"--option={name}={value}" for name, value in options.items())]
    environment = {**os.environ, "LC_ALL": "C"}
    subprocess.run([*apt, "update"], check=True, timeout=60, env=environment, capture_output=True)
    simulated = subprocess.run(
        [*apt, "--simulate", "install", *WANTED],
        check=False,
        timeout=60,
        env=environment,
        capture_output=True,
        text=True,
    )
    lines = (line.split() for line in simulated.stdout.splitlines() if line.startswith("Inst "))
    return simulated.returncode, {f"{words[1]} {words[2].lstrip('(')}" for words in lines}


def test_the_role_takes_a_driver_of_one_branch(published: Path, tmp_path: Path) -> None:
    template = (ROOT / "roles/nvidia_driver/templates/preferences.j2").read_text(encoding="utf-8")
    status, installed = install(published, tmp_path, template.replace("{{ nvidia_driver_branch }}", "580.95"))
    names = ("libnvidia-ml1", "nvidia-driver-cuda", "nvidia-kernel-open-dkms")
    assert (status, installed) == (0, {"dkms 3", *(f"{name} 580.95.05-1" for name in names)})


def test_without_its_pin_apt_mixes_branches(published: Path, tmp_path: Path) -> None:
    """Newer ones are there: what the wanted packages depend on would be one of these."""
    status, installed = install(published, tmp_path, "")
    assert status != 0
    assert not installed
