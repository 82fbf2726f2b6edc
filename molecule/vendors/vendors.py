"""Makes vendors out of what the lab's mirror serves: signed repositories of their layout, and a lock that trusts them.

    vendors.py BUNDLE DEBIAN12 LOCK ADDRESS FOLDER SHAPE

BUNDLE and DEBIAN12 are lists of artefacts, of the test lab and of vars/debian12.lock.yml; without the latter there is
no archive of Debian 12. LOCK is the project's lock file, ADDRESS that of the server. FOLDER gets `www`, with a folder
for each name, `ca.crt` and `tls.key` for all names, `archive.asc` and `archive.gpg` (the key of the distribution's
archive), and `bundle.lock.yml`. SHAPE is `debian`, or `ubuntu`: then the same packages are also served as Ubuntu's
archive and as Docker's repository for Ubuntu.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import yaml

PORT = 8443
"""Where the controller, which does not know the vendors' names, fetches their keys and files by address."""
NAMES = ("pkgs.k8s.io", "download.docker.com", "registry.k8s.io", "quay.io", "registry-1.docker.io")
DOCKER = {"docker.io": "docker-ce", "docker-cli": "docker-ce-cli", "docker-buildx": "docker-buildx-plugin"}
"""Debian's Docker under the names of the vendor's packages, which cannot be built here."""
UBUNTU = {"noble": ("24.04", "trixie"), "jammy": ("22.04", "bookworm")}
"""Suite of Ubuntu -> its version, and the suite of Debian whose packages stand in for its own."""
UBUNTU_ARCHIVES = {
    "archive.ubuntu.com": ("", "-updates", "-backports"),
    "security.ubuntu.com": ("-security",),
}
"""Server -> ends of the names of its suites; only the first one has packages."""
UNIVERSE = ("conntrack", "ipset", "socat")
"""Packages outside `main`, so that both components are needed. Which ones Ubuntu has there was not compared."""
ZSTD = ("-Zzstd", "-z1")
"""Compression of Ubuntu's packages, which also saves space on the server."""
KUBERNETES = ("kubelet", "kubeadm", "kubectl", "cri-tools", "kubernetes-cni")


def gpg(home: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    argv = ["gpg", "--homedir", str(home), "--batch", "--pinentry-mode=loopback", "--passphrase=", *arguments]
    return subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, check=True, timeout=60).stdout


class Key:
    """A key that signs one vendor's repositories."""

    def __init__(self, name: str) -> None:
        # Short, because the path of the agent's socket has at most 108 characters (unix(7)).
        self._folder = tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp", ignore_cleanup_errors=True)
        self._home = Path(self._folder.name)
        gpg(self._home, "--quick-gen-key", name, "ed25519", "sign", "never")
        listed = gpg(self._home, "--with-colons", "--list-keys").decode().splitlines()
        self.fingerprint = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
        self.armored = gpg(self._home, "--armor", "--export")
        self.binary = gpg(self._home, "--export")

    def sign(self, release: str) -> bytes:
        return gpg(self._home, "--clearsign", stdin=release.encode())


def publish(folder: Path, key: Key, indexes: Mapping[str, Sequence[str]], **fields: str) -> None:
    """A repository: `folder` gets Release signed and the indexes, path -> stanzas of its packages."""
    files = {}
    for index, stanzas in indexes.items():
        plain = "\n".join(stanzas).encode()
        files |= {index: plain, f"{index}.gz": gzip.compress(plain, mtime=0)}
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S UTC")
    lines = [f"{name}: {value}" for name, value in {**fields, "Date": date, "Architectures": "amd64"}.items()]
    # One digest only, as NVIDIA's indexes have it.
    lines.append("SHA512:")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        lines.append(f" {hashlib.sha512(content).hexdigest()} {len(content)} {name}")
    lines.append("")
    (folder / "InRelease").write_bytes(key.sign("\n".join(lines)))


def repack(package: Path, name: str, folder: Path, change: Callable[[list[str]], list[str]], *packed: str) -> str:
    """A copy of a package in `folder` with changed fields; its stanza.

    :param change: returns the fields, each with its continuation lines.
    :param packed: options of dpkg-deb for the compression.
    """
    tree = folder / name
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True, timeout=120)
    control = tree / "DEBIAN" / "control"
    fields = change(re.split(r"\n(?! )", control.read_text().strip()))
    control.write_text("\n".join([*fields, ""]))
    made = folder / f"{name}.deb"
    build = ["dpkg-deb", "--build", *(packed or ["-Znone"]), tree, made]
    subprocess.run(build, check=True, timeout=120, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    digest = hashlib.sha512(made.read_bytes()).hexdigest()
    where = [f"Filename: {folder.name}/{made.name}", f"Size: {made.stat().st_size}", f"SHA512: {digest}"]
    return "\n".join([*fields, *where, ""])


def renamed(name: str, fields: list[str]) -> list[str]:
    """The fields of a package under another name, as the vendor's containerd.io demands it."""
    kept = [each for each in fields if not each.startswith(("Package:", "Conflicts:", "Breaks:", "Recommends:"))]
    kept = [re.sub(r"containerd \([^)]*\)", "containerd.io", re.sub(r", runc \([^)]*\)", "", each)) for each in kept]
    return [f"Package: {name}", *kept]


def versioned(system: str, suite: str, fields: list[str]) -> list[str]:
    """The fields of a package with a version of the form that Docker's repository has for a system.

    2.3.4-1 -> 2.3.4-1~ubuntu.24.04~noble

    :param system: distribution and its version, `ubuntu.24.04`.
    """
    return [re.sub(r"^Version: ([0-9.]+).*$", rf"Version: \1-1~{system}~{suite}", each) for each in fields]


def scan(debian12: Path, archive: Path) -> list[str]:
    """The packages of Debian 12, copied to `archive`, and their stanzas."""
    shutil.copytree(json.loads(debian12.read_text())["debian12_packages"]["path"], archive)
    program = ["dpkg-scanpackages", "--multiversion", archive.name]
    scanned = subprocess.run(
        program, cwd=archive.parent, check=True, timeout=300, capture_output=True, text=True
    ).stdout
    return [f"{each}\n" for each in scanned.split("\n\n") if each.strip()]


def publish_ubuntu(
    www: Path, docker: Mapping[str, Path], archives: Mapping[str, Sequence[str]], keys: Mapping[str, Key]
) -> None:
    """Ubuntu's archive, and Docker's repository for Ubuntu.

    :param docker: name that a vendor's package gets -> the package.
    :param archives: suite of Debian -> stanzas of its packages.
    """
    for suite, (version, debian) in UBUNTU.items():
        if debian not in archives:
            continue
        vendor = www / "download.docker.com/linux/ubuntu"
        (vendor / suite).mkdir(parents=True)
        stanzas = []
        for name, package in docker.items():
            change = partial(_for_ubuntu, name, f"ubuntu.{version}", suite)
            stanzas.append(repack(package, name, vendor / suite, change, *ZSTD))
        names = {"Suite": suite, "Codename": suite, "Components": "stable"}
        publish(vendor / "dists" / suite, keys["docker"], {"stable/binary-amd64/Packages": stanzas}, **names)
        universe = [each for each in archives[debian] if each.splitlines()[0].removeprefix("Package: ") in UNIVERSE]
        of_release = {"main": [each for each in archives[debian] if each not in universe], "universe": universe}
        for server, ends in UBUNTU_ARCHIVES.items():
            for end in ends:
                held = {name: [] for name in ("main", "restricted", "universe", "multiverse")}
                held |= {} if end else of_release
                names = {"Origin": "Ubuntu", "Suite": suite + end, "Codename": suite, "Components": " ".join(held)}
                indexes = {f"{component}/binary-amd64/Packages": each for component, each in held.items()}
                publish(www / server / "ubuntu/dists" / (suite + end), keys["debian"], indexes, **names)
    # The stanzas of Debian 12 name their files below this folder.
    if "bookworm" in archives:
        (www / "archive.ubuntu.com/ubuntu/bookworm").symlink_to("../../deb.debian.org/debian/bookworm")


def _for_ubuntu(name: str, system: str, suite: str, fields: list[str]) -> list[str]:
    return versioned(system, suite, fields if name == "containerd.io" else renamed(name, fields))


def main(bundle: Path, debian12: Path, lock: Path, address: str, folder: Path, shape: str) -> None:
    artefacts = json.loads(bundle.read_text())["artefacts"]
    with tarfile.open(Path(artefacts["apt_repository"]["path"]) / "repository.tar") as archive:
        packages = archive.extractfile("./dists/trainyard/main/binary-amd64/Packages")
        assert packages
        stanzas = [f"{each}\n" for each in packages.read().decode().split("\n\n") if each.strip()]
        pool = [
            each
            for each in archive.getmembers()
            if each.isfile() and Path(each.name).name.partition("_")[0] in (*DOCKER, "containerd.io")
        ]
        archive.extractall(folder, pool, filter="data")
    kubernetes = [each for each in stanzas if each.splitlines()[0].removeprefix("Package: ") in KUBERNETES]
    containerd = [each for each in stanzas if each.startswith("Package: containerd.io\n")]
    debian = [each for each in stanzas if each not in kubernetes and each not in containerd]
    files = {Path(each.name).name.partition("_")[0]: folder / each.name for each in pool}
    packages_of_docker = {name: files[of_debian] for of_debian, name in DOCKER.items()}
    target = folder / "www/download.docker.com/linux/debian/renamed"
    target.mkdir(parents=True)
    docker = [repack(file, name, target, partial(renamed, name)) for name, file in packages_of_docker.items()]
    keys = {name: Key(name) for name in ("kubernetes", "docker", "debian")}
    www = folder / "www"
    data = yaml.safe_load(lock.read_text())
    # Its host and path, as the lock names them.
    packages_of_kubernetes = (
        str(data["artefacts"]["deb_kubelet"]["upstream"]["apt"]).removeprefix("https://").rstrip("/")
    )
    publish(www / packages_of_kubernetes, keys["kubernetes"], {"Packages": kubernetes})
    for suite in ("bookworm", "trixie"):
        release = www / "download.docker.com/linux/debian/dists" / suite
        names = {"Suite": suite, "Codename": suite, "Components": "stable"}
        publish(release, keys["docker"], {"stable/binary-amd64/Packages": containerd + docker}, **names)
    archives = {"trixie": debian}
    if debian12.exists():
        archives["bookworm"] = scan(debian12, www / "deb.debian.org/debian/bookworm")
    for suite, held in archives.items():
        names = {"Suite": suite, "Codename": suite, "Components": "main"}
        release = www / "deb.debian.org/debian/dists" / suite
        publish(release, keys["debian"], {"main/binary-amd64/Packages": held}, **names)
    if shape == "ubuntu":
        publish_ubuntu(www, {**packages_of_docker, "containerd.io": files["containerd.io"]}, archives, keys)
    (www / packages_of_kubernetes / "Release.key").write_bytes(keys["kubernetes"].armored)
    (www / "download.docker.com/linux/debian/gpg").write_bytes(keys["docker"].armored)
    (folder / "archive.asc").write_bytes(keys["debian"].armored)
    (folder / "archive.gpg").write_bytes(keys["debian"].binary)
    manifest = (
        (Path(artefacts["calico_manifest"]["path"]) / "calico-vxlan.yaml")
        .read_text()
        .replace("docker.io/calico/", "quay.io/calico/")
    )
    calico = Path("calico", artefacts["image_calico_node"]["version"], "calico-vxlan.yaml")
    (www / calico).parent.mkdir(parents=True)
    (www / calico).write_text(manifest)
    kubectl = Path("release", artefacts["kubectl"]["version"], "bin/linux/amd64/kubectl")
    (www / kubectl).parent.mkdir(parents=True)
    shutil.copy(Path(artefacts["kubectl"]["path"]) / "kubectl", www / kubectl)

    names = ",".join([f"DNS:{name}" for name in NAMES] + [f"IP:{address}"])
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    make += ["-subj", "/CN=vendors", "-addext", f"subjectAltName={names}"]
    subprocess.run(
        [*make, "-keyout", folder / "tls.key", "-out", folder / "ca.crt"],
        check=True,
        timeout=60,
        stderr=subprocess.DEVNULL,
    )

    base = f"https://{address}:{PORT}"
    entries = data["artefacts"]
    for name, origin, path in (
        ("deb_kubelet", "kubernetes", f"{packages_of_kubernetes}/Release.key"),
        ("deb_containerd", "docker", "download.docker.com/linux/debian/gpg"),
    ):
        entries[name]["upstream"] |= {"key": f"{base}/{path}", "signed_by": keys[origin].fingerprint}
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    download = {"url": f"{base}/{calico}#sha256={digest}", "file": calico.name}
    entries["calico_vendor_manifest"] |= {"version": calico.parts[1], "upstream": {"downloads": [download]}}
    digest = hashlib.sha256((www / kubectl).read_bytes()).hexdigest()
    entries["kubectl"]["upstream"] = {"downloads": [{"url": f"{base}/{kubectl}#sha256={digest}", "file": "kubectl"}]}
    for name, made in artefacts.items():
        vendor, reference = name, made.get("reference", "")
        if name.startswith("image_calico_"):
            vendor = name.replace("image_calico_", "image_calico_vendor_")
            reference = reference.replace("docker.io/", "quay.io/")
            entries[vendor]["version"] = made["version"]
        if "image" in entries[vendor].get("upstream", {}):
            entries[vendor]["upstream"]["image"] = f"{reference}@{made['digest']}"
    (folder / "bundle.lock.yml").write_text(yaml.safe_dump(data, sort_keys=False, width=1000))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], Path(sys.argv[5]), sys.argv[6])
