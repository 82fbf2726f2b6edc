"""Makes an apt repository such as NVIDIA's, with versions of a driver that drives nothing.

    packages.py LIBRARY DEBIAN KEYRING FOLDER

LIBRARY and DEBIAN are folders of the bundle: `lab_gpus`, which stands for the driver's library and `nvidia-smi`, and
Debian's packages that build kernel modules. KEYRING is that of the mirror, which signs what its hosts take. FOLDER
gets the packages and their signed index. The packages have the names and dependencies of NVIDIA's for Debian 13 as far
as the role knows them; the kernel module is built on the host, by dkms.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

VERSIONS = {"570.172.08": "12.8", "570.195.03": "12.8", "580.95.05": "13.0"}
"""Two branches, each version with the newest CUDA that it knows."""
SOURCES = Path(__file__).resolve().parent / "driver"
LIBRARIES = "usr/lib/x86_64-linux-gnu"

ADD = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    dkms install -m nvidia -v @VERSION@ -k "$(uname -r)"
fi
"""
REMOVE = """#!/bin/sh
set -e
dkms remove -m nvidia -v @VERSION@ --all
"""
LINK = "L /run/lab-gpus/module - - - - /sys/module/nvidia/version\n"
"""The library compares its version with what this file says; here it is the module that the kernel has loaded."""


def run(*argv: str | Path, stdin: bytes = b"", cwd: Path | None = None) -> bytes:
    """What a program prints."""
    return subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, check=True, timeout=120, cwd=cwd).stdout


def build(tree: Path, name: str, version: str, folder: Path, **fields: str) -> None:
    """A package of all that lies in `tree`."""
    control = tree / "DEBIAN" / "control"
    control.parent.mkdir(exist_ok=True)
    own = {"Package": name, "Version": f"{version}-1", "Architecture": "amd64", **fields}
    own |= {"Maintainer": "trainyard <trainyard@example.invalid>", "Description": "stands for NVIDIA's"}
    control.write_text("".join(f"{field}: {value}\n" for field, value in own.items()), encoding="utf-8")
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, folder)


def module(tree: Path, version: str, folder: Path) -> None:
    """The kernel module: its source, and the scripts that have dkms build it, and take it away."""
    files = {tree / f"usr/src/nvidia-{version}" / path.name: path.read_text() for path in SOURCES.iterdir()}
    files |= {tree / "DEBIAN/postinst": ADD, tree / "DEBIAN/prerm": REMOVE}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("@VERSION@", version), encoding="utf-8")
        path.chmod(0o755 if path.parent.name == "DEBIAN" else 0o644)
    build(tree, "nvidia-kernel-open-dkms", version, folder, Depends="dkms")


def programs(tree: Path, library: Path, version: str, folder: Path) -> None:
    """The library of a driver with one GPU, and `nvidia-smi`, as the program `lab-gpus` makes them for a host."""
    host = tree / "host"
    shutil.copytree(library, host / "usr/lib/lab-gpus")
    program = host / "usr/lib/lab-gpus/lab-gpus"
    options = ("--profile=A100", f"--driver={version}", f"--cuda={VERSIONS[version]}", "--seed=gpu-driver")
    run(sys.executable, program, "--root", host, "install", "1", *options)
    parts = {"libnvidia-ml1": tree / "libnvidia-ml1", "nvidia-driver-cuda": tree / "nvidia-driver-cuda"}
    shutil.copytree(host / LIBRARIES, parts["libnvidia-ml1"] / LIBRARIES, symlinks=True)
    link = parts["libnvidia-ml1"] / "usr/lib/tmpfiles.d/nvidia-module.conf"
    link.parent.mkdir(parents=True)
    link.write_text(LINK, encoding="utf-8")
    (parts["nvidia-driver-cuda"] / "usr/bin").mkdir(parents=True)
    shutil.copy(host / "usr/bin/nvidia-smi", parts["nvidia-driver-cuda"] / "usr/bin")
    build(parts["libnvidia-ml1"], "libnvidia-ml1", version, folder)
    build(parts["nvidia-driver-cuda"], "nvidia-driver-cuda", version, folder, Depends=f"libnvidia-ml1 (= {version}-1)")


def publish(folder: Path, keyring: Path) -> None:
    """The index of the packages in `folder`, signed; only the signature vouches for them."""
    index = run("dpkg-scanpackages", "--multiversion", ".", cwd=folder)
    lines = [f"Date: {datetime.now(UTC):%a, %d %b %Y %H:%M:%S} UTC", "Architectures: amd64", "SHA256:"]
    for name, content in {"Packages": index, "Packages.gz": gzip.compress(index, mtime=0)}.items():
        (folder / name).write_bytes(content)
        lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}")
    release = "\n".join([*lines, ""]).encode()
    signed = run("gpg", f"--homedir={keyring}", "--batch", "--digest-algo=SHA512", "--clear-sign", stdin=release)
    (folder / "InRelease").write_bytes(signed)


def main(library: Path, debian: Path, keyring: Path, folder: Path) -> None:
    os.umask(0o022)
    for package in debian.glob("*.deb"):
        shutil.copy(package, folder)
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            module(work / "module", version, folder)
            programs(work, library, version, folder)
    publish(folder, keyring)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:5]))
