"""Part `zoo_controller` of `make proof`: a controller that names itself Ubuntu 24.04, with Docker CE, without root.

README's commands create the environment there, on a Debian 13 that knows nothing of the project. The bundle installs
its programs and builds one image. It must remove no package of the owner, and leave Docker's runc.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule" / "vendors")]

from vendors import DOCKER, renamed, repack  # noqa: E402

from tests.zoo.rows import rows  # noqa: E402
from trainyard.lab.host import detect, podman, run_arguments  # noqa: E402

ARTEFACTS = Path("/var/cache/trainyard/artefacts")
NAME = "trainyard-zoo-controller"
IMAGE = "image_pause"
PLACE = "/home/ubuntu/our servers/trainyard"
LIMIT = 1500

SYSTEM = r"""
export DEBIAN_FRONTEND=noninteractive
cp /settings/sources /etc/apt/sources.list
for name in apt.conf.d pip.conf certs; do
  test -e /settings/$name || continue
  case $name in
    apt.conf.d) cp /settings/$name/* /etc/apt/apt.conf.d/ ;;
    pip.conf) cp /settings/$name /etc/ ;;
    certs) mkdir -p /etc/ssl/certs; cp /settings/$name/ca-certificates.crt /etc/ssl/certs/ ;;
  esac
done
apt-get --quiet update
apt-get --quiet --yes --no-install-recommends install git make python3-venv sudo /docker/*.deb
useradd --create-home --shell /bin/bash ubuntu
echo 'ubuntu ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/ubuntu
git config --system safe.directory '*'
mkdir -p /var/cache/trainyard/artefacts
cp -r /pause/* /var/cache/trainyard/artefacts/
"""
"""Makes the owner's system: packages, Docker, a login user. The cache has the program of the image alone."""

USER = f"""
mkdir -p '{PLACE}'
git clone --quiet /source '{PLACE}'
cd '{PLACE}'
make env
source .venv/bin/activate
ansible-playbook -i inventories/example tests/zoo/controller.yml -e '{json.dumps({"zoo_images": [IMAGE]})}'
"""

RUNC = "command -v runc; dpkg-query --search $(command -v runc)"
PACKAGES = "dpkg-query --show --showformat='${Package} ${Version} ${db:Status-Abbrev}\\n'"


def artefact(name: str) -> Path:
    """Return the newest artefact of a name."""
    found = sorted(ARTEFACTS.glob(f"{name}-????????????????"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit(f"The bundle of this machine has no {name}. Run `make lab` once.")
    return found[-1]


def settings(folder: Path) -> None:
    """Copy what this machine needs to reach its package archives; the suite is that of the system."""
    uris = "http://deb.debian.org/debian"
    for source in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        for line in source.read_text(encoding="utf-8").splitlines():
            if line.startswith("URIs:") and line.rstrip("/").endswith("/debian"):
                uris = line.split()[1]
    (folder / "sources").write_text(f"deb {uris} trixie main\n", encoding="utf-8")
    for name, path in {"apt.conf.d": "/etc/apt/apt.conf.d", "pip.conf": "/etc/pip.conf"}.items():
        if Path(path).exists():
            subprocess.run(["cp", "-r", path, folder / name], check=True, timeout=20)
    (folder / "certs").mkdir()
    subprocess.run(["cp", "/etc/ssl/certs/ca-certificates.crt", folder / "certs"], check=True, timeout=20)


def docker(folder: Path) -> None:
    """Write Docker CE, which is Debian's Docker under the names of the vendor's packages, and containerd.io."""
    packages = artefact("debian_packages")
    for name, vendors in DOCKER.items():
        (package,) = packages.glob(f"{name}_*.deb")
        repack(package, vendors, folder, partial(renamed, vendors))
    (containerd,) = artefact("deb_containerd").glob("*.deb")
    subprocess.run(["cp", containerd, folder], check=True, timeout=60)


def inside(script: str, user: str, limit: float) -> str:
    """Execute a script in the controller and return its output.

    :raises SystemExit: it fails; the message has the end of its output.
    """
    command = ["podman", "exec", "--interactive", f"--user={user}", NAME, "bash", "-euo", "pipefail"]
    done = subprocess.run(
        command, input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit, check=False
    )
    if done.returncode:
        raise SystemExit(f"{user} failed with {done.returncode}: {done.stdout[-6000:]}")
    return done.stdout


def name_system() -> None:
    """Give the controller the names of Ubuntu 24.04, as the row of the host has them."""
    (row,) = (row for row in rows() if row.name == "ubuntu_2404")
    for task in row.prepare:
        copy: Mapping[str, str] = task.get("ansible.builtin.copy", {})
        if copy.get("dest") in ("/usr/lib/os-release", "/etc/lsb-release", "/etc/debian_version"):
            inside(f"cat > {copy['dest']} << 'END'\n{copy['content']}END\n", "root", 30)


def faults(before: Sequence[str], after: Sequence[str], runc: str) -> list[str]:
    """Compare the packages of the owner, and Docker's runc; look at the image."""
    wrong = [f"the package changed: {line}" for line in before if line not in after]
    wrong += [f"installed beside containerd.io: {line}" for line in after if line.startswith("runc ")]
    if (found := inside(RUNC, "root", 30)) != runc:
        wrong.append(f"runc was {runc!r} and is {found!r}")
    index = f"cat /var/cache/trainyard/artefacts/{IMAGE}-*/oci/index.json"
    if "manifests" not in yaml.safe_load(inside(index, "root", 30)):
        wrong.append("the image has no index")
    return wrong


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="zoo-", dir="/var/tmp") as name:
        folder = Path(name)
        for each in ("root", "docker", "settings", "pause"):
            (folder / each).mkdir()
        subprocess.run(
            ["tar", "--extract", f"--file={artefact('rootfs_node')}/rootfs.tar", f"--directory={folder}/root"],
            check=True, timeout=300,
        )  # fmt: skip
        docker(folder / "docker")
        settings(folder / "settings")
        subprocess.run(["cp", "-r", artefact("pause"), folder / "pause"], check=True, timeout=60)
        mounts = [f"--volume={folder / each}:/{each}:ro" for each in ("docker", "settings", "pause")]
        mounts += [f"--volume={ROOT}:/source:ro", "--volume=/var/lib/containers"]
        given = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
        mounts += [f"--volume={value}:{value}:ro" for value in given.values() if Path(value).is_dir()]
        options = [*run_arguments(detect()), "--network=host", *mounts, *(f"--env={key}" for key in given)]
        try:
            podman("run", "--detach", f"--name={NAME}", *options, "--rootfs", f"{folder}/root", "sleep", "infinity")
            inside(SYSTEM, "root", 600)
            name_system()
            before = inside(PACKAGES, "root", 30).splitlines()
            runc = inside(RUNC, "root", 30)
            inside(USER, "ubuntu", LIMIT)
            wrong = faults(before, inside(PACKAGES, "root", 30).splitlines(), runc)
        finally:
            podman("rm", "--force", "--ignore", "--time=0", "--volumes", NAME)
    print(json.dumps({"part": "zoo_controller", "packages": len(before), "faults": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
