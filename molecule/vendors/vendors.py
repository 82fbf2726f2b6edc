"""Makes vendors out of what the lab's mirror serves: signed repositories of their layout, and a lock that trusts them.

    vendors.py BUNDLE DEBIAN12 LOCK ADDRESS FOLDER

BUNDLE and DEBIAN12 are lists of artefacts, of the test lab and of vars/debian12.lock.yml; without the latter there is
no archive of Debian 12. LOCK is the project's lock
file, ADDRESS that of the server. FOLDER gets `www`, with a folder for each name, `ca.crt` and `tls.key` for all names,
`archive.asc` (the key of Debian's archive), and `bundle.lock.yml`.
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
from datetime import UTC, datetime
from pathlib import Path

import yaml

PORT = 8443
"""Where the controller, which does not know the vendors' names, fetches their keys and files by address."""
NAMES = ("pkgs.k8s.io", "download.docker.com", "registry.k8s.io", "quay.io", "registry-1.docker.io")
DOCKER = {"docker.io": "docker-ce", "docker-cli": "docker-ce-cli", "docker-buildx": "docker-buildx-plugin"}
"""Debian's Docker under the names of the vendor's packages, which cannot be built here."""
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

    def sign(self, release: str) -> bytes:
        return gpg(self._home, "--clearsign", stdin=release.encode())


def publish(folder: Path, stanzas: list[str], key: Key, *, index: str, **fields: str) -> None:
    """A repository: `folder` gets Release signed and the index of packages at its path."""
    plain = "\n".join(stanzas).encode()
    files = {index: plain, f"{index}.gz": gzip.compress(plain, mtime=0)}
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


def rename(package: Path, name: str, folder: Path) -> str:
    """A copy of a package under another name in `folder`, as the vendor's containerd.io demands it; its stanza."""
    tree = folder / name
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True, timeout=120)
    control = tree / "DEBIAN" / "control"
    fields = re.split(r"\n(?! )", control.read_text().strip())
    kept = [each for each in fields if not each.startswith(("Package:", "Conflicts:", "Breaks:", "Recommends:"))]
    kept = [re.sub(r"containerd \([^)]*\)", "containerd.io", re.sub(r", runc \([^)]*\)", "", each)) for each in kept]
    control.write_text("\n".join([f"Package: {name}", *kept, ""]))
    made = folder / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--build", "-Znone", tree, made], check=True, timeout=120, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    digest = hashlib.sha512(made.read_bytes()).hexdigest()
    where = [f"Filename: renamed/{made.name}", f"Size: {made.stat().st_size}", f"SHA512: {digest}"]
    return "\n".join([f"Package: {name}", *kept, *where, ""])


def scan(debian12: Path, archive: Path) -> list[str]:
    """The packages of Debian 12, copied to `archive`, and their stanzas."""
    shutil.copytree(json.loads(debian12.read_text())["debian12_packages"]["path"], archive)
    program = ["dpkg-scanpackages", "--multiversion", archive.name]
    scanned = subprocess.run(
        program, cwd=archive.parent, check=True, timeout=300, capture_output=True, text=True
    ).stdout
    return [f"{each}\n" for each in scanned.split("\n\n") if each.strip()]


def main(bundle: Path, debian12: Path, lock: Path, address: str, folder: Path) -> None:
    artefacts = json.loads(bundle.read_text())["artefacts"]
    with tarfile.open(Path(artefacts["apt_repository"]["path"]) / "repository.tar") as archive:
        packages = archive.extractfile("./dists/trainyard/main/binary-amd64/Packages")
        assert packages
        stanzas = [f"{each}\n" for each in packages.read().decode().split("\n\n") if each.strip()]
        pool = [
            each for each in archive.getmembers() if each.isfile() and Path(each.name).name.partition("_")[0] in DOCKER
        ]
        archive.extractall(folder, pool, filter="data")
    kubernetes = [each for each in stanzas if each.splitlines()[0].removeprefix("Package: ") in KUBERNETES]
    containerd = [each for each in stanzas if each.startswith("Package: containerd.io\n")]
    debian = [each for each in stanzas if each not in kubernetes and each not in containerd]
    renamed = folder / "www/download.docker.com/linux/debian/renamed"
    renamed.mkdir(parents=True)
    docker = [rename(folder / each.name, DOCKER[Path(each.name).name.partition("_")[0]], renamed) for each in pool]
    keys = {name: Key(name) for name in ("kubernetes", "docker", "debian")}
    www = folder / "www"
    data = yaml.safe_load(lock.read_text())
    # Its host and path, as the lock names them.
    packages_of_kubernetes = (
        str(data["artefacts"]["deb_kubelet"]["upstream"]["apt"]).removeprefix("https://").rstrip("/")
    )
    publish(www / packages_of_kubernetes, kubernetes, keys["kubernetes"], index="Packages")
    for suite in ("bookworm", "trixie"):
        release = www / "download.docker.com/linux/debian/dists" / suite
        names = {"Suite": suite, "Codename": suite, "Components": "stable"}
        publish(release, containerd + docker, keys["docker"], index="stable/binary-amd64/Packages", **names)
    archives = {"trixie": debian}
    if debian12.exists():
        archives["bookworm"] = scan(debian12, www / "deb.debian.org/debian/bookworm")
    for suite, held in archives.items():
        names = {"Suite": suite, "Codename": suite, "Components": "main"}
        release = www / "deb.debian.org/debian/dists" / suite
        publish(release, held, keys["debian"], index="main/binary-amd64/Packages", **names)
    (www / packages_of_kubernetes / "Release.key").write_bytes(keys["kubernetes"].armored)
    (www / "download.docker.com/linux/debian/gpg").write_bytes(keys["docker"].armored)
    (folder / "archive.asc").write_bytes(keys["debian"].armored)
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
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], Path(sys.argv[5]))
