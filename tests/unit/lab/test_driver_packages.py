"""The packages of the scenario gpu_driver, as apt takes them with and without what the role says of their versions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from trainyard.core.errors import CommandError
from trainyard.host import packages
from trainyard.host.packages import Packages

ROOT = Path(__file__).resolve().parents[3]
WANTED = ("nvidia-kernel-open-dkms=570.172.08*", "nvidia-driver-cuda=570.172.08*")
DKMS = "Package: dkms\nVersion: 3\nArchitecture: amd64\nMaintainer: test\nDescription: stands for Debian's\n"


@pytest.fixture(scope="module")
def published(made_gpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
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
    yield folder
    _run("gpgconf", f"--homedir={keyring}", "--kill", "all")


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=120, capture_output=True)


def options(published: Path, root: Path, preferences: str, status: str = "") -> list[str]:
    """apt's options for a host below `root` that takes packages from the repository, with its index read.

    :param status: what dpkg knows of the host's packages.
    """
    for path in ("lists/partial", "archives/partial", "log"):
        (root / path).mkdir(parents=True)
    (root / "status").write_text(status, encoding="utf-8")
    (root / "preferences").write_text(preferences, encoding="utf-8")
    source = f"deb [signed-by={published / 'key.asc'}] file:{published / 'packages'} ./\n"
    (root / "sources.list").write_text(source, encoding="utf-8")
    values = {
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
    words = [f"--option={name}={value}" for name, value in values.items()]
    _run("apt-get", *words, "update")
    return words


def install(published: Path, root: Path, preferences: str) -> tuple[int, set[str]]:
    """Status of apt on a host with nothing installed, and what it would install, as NAME VERSION."""
    simulated = subprocess.run(
        ["apt-get", *options(published, root, preferences), "--simulate", "install", *WANTED],
        check=False,
        timeout=60,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
    )
    lines = (line.split() for line in simulated.stdout.splitlines() if line.startswith("Inst "))
    return simulated.returncode, {f"{words[1]} {words[2].lstrip('(')}" for words in lines}


def test_the_role_takes_a_driver_of_one_branch(published: Path, tmp_path: Path) -> None:
    template = (ROOT / "roles/nvidia_driver/templates/preferences.j2").read_text(encoding="utf-8")
    status, installed = install(published, tmp_path, template.replace("{{ __nvidia_driver_pattern }}", "570.172.08*"))
    names = ("libnvidia-ml1", "nvidia-driver-cuda", "nvidia-kernel-open-dkms")
    assert (status, installed) == (0, {"dkms 3", *(f"{name} 570.172.08-1" for name in names)})


def test_without_its_pin_apt_mixes_branches(published: Path, tmp_path: Path) -> None:
    """Newer ones are there: what the wanted packages depend on would be one of these."""
    status, installed = install(published, tmp_path, "")
    assert status != 0
    assert not installed


def test_the_role_goes_back_to_an_older_branch(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = (ROOT / "roles/nvidia_driver/templates/preferences.j2").read_text(encoding="utf-8")
    index = (published / "packages/Packages").read_text(encoding="utf-8")
    newer = [each for each in index.split("\n\n") if "Package: dkms\n" in each or "Version: 580.95.05-1\n" in each]
    # The role holds what it asks for, and not what that depends on.
    held = [each.split("=")[0] for each in WANTED]
    state = {each: "hold" if any(f"Package: {name}\n" in each for name in held) else "install" for each in newer}
    status = "".join(f"{each.strip()}\nStatus: {state[each]} ok installed\n\n" for each in newer)
    apt = options(published, tmp_path, template.replace("{{ __nvidia_driver_pattern }}", "570.172.08*"), status)
    made: list[list[str]] = []

    def on_the_host(argv: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        if "install" in argv and "--simulate" not in argv:
            made.append([*argv])
            return subprocess.CompletedProcess(argv, 0, "", "")
        return run([argv[0], *apt, *argv[1:]], timeout=60, env={"LC_ALL": "C"})

    run = packages.run
    monkeypatch.setattr(packages, "run", on_the_host)
    monkeypatch.setattr(packages, "index_is_current", lambda: True)
    wanted = dict(each.split("=") for each in WANTED)
    with pytest.raises(CommandError, match="--allow-downgrades"):
        Packages(wanted).install([*wanted])
    assert not made
    Packages(wanted, may_downgrade=True).install([*wanted])
    assert "--allow-downgrades" in made[0]
