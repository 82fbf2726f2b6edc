"""A package from a vendor's signed repository, in both shapes, and every altered bit on the way."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.bundle.vendors import Signer, Vendor, flipped, make_signer, sha256, stop_agent
from trainyard.bundle import apt
from trainyard.bundle.origin import Apt
from trainyard.bundle.vendor.vendor_apt import Archive
from trainyard.core.errors import TrainyardError

DEB = b"a package, which nobody here unpacks" * 10
ROOTS = {"flat": "/deb/", "dists": "/debian/"}
POOL = {"flat": "amd64/tool_1.2-1_amd64.deb", "dists": "pool/main/t/tool_1.2-1_amd64.deb"}


@pytest.fixture(scope="module")
def signers() -> Iterator[dict[str, Signer]]:
    """Keys that sign well, that belong to somebody else, and that are past their term."""
    # Not in pytest's folders: the path of the agent's socket has to be short.
    with tempfile.TemporaryDirectory(prefix="ty-") as folder:
        made = {name: make_signer(Path(folder, name), f"{name} <{name}@example.org>") for name in ("vendor", "other")}
        past = ("30d", "--faked-system-time=20200101T000000!")
        made["expired"] = make_signer(Path(folder, "expired"), "old <old@example.org>", *past)
        yield made
        for signer in made.values():
            stop_agent(signer)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch) -> None:
    monkeypatch.setitem(apt.OPTIONS, "Acquire::Retries", "0")


def publish(
    vendor: Vendor, signer: Signer, shape: str, *, extra: str = "", detached: bool = False, deb: bytes = DEB
) -> Apt:
    """Put a repository with one package on the server, and say where it is."""
    root = ROOTS[shape]
    release_folder = root if shape == "flat" else f"{root}dists/trixie/"
    index = "Packages" if shape == "flat" else "stable/binary-amd64/Packages"
    packages = f"""Package: tool
Version: 1.1-1
Architecture: amd64
Filename: old.deb
SHA256: {"0" * 64}

Package: tool
Version: 1.2-1
Architecture: amd64
Filename: {POOL[shape]}
SHA256: {sha256(deb)}
""".encode()
    packed = gzip.compress(packages, mtime=0)
    release = f"""Origin: vendor
{extra}Date: Thu, 02 Jan 2020 00:00:00 UTC
MD5Sum:
 {hashlib.md5(packed).hexdigest()} {len(packed)} {index}.gz
SHA256:
 {sha256(packages)} {len(packages)} {index}
 {sha256(packed)} {len(packed)} {index}.gz
""".encode()
    options = ["--faked-system-time=20200102T000000!"] if "expired" in str(signer.home) else []
    vendor.files |= {
        f"{root}{POOL[shape]}": deb,
        f"{release_folder}{index}": packages,
        f"{release_folder}{index}.gz": packed,
        f"{release_folder}Release": release,
        f"{root}key": signer("--armor", "--export"),
    }
    if detached:
        vendor.files[f"{release_folder}Release.gpg"] = signer(*options, "--armor", "--detach-sign", stdin=release)
    else:
        vendor.files[f"{release_folder}InRelease"] = signer(*options, "--clearsign", stdin=release)
    suite, component = ("/", "") if shape == "flat" else ("trixie", "stable")
    url = f"{vendor.url}{root}"
    return Apt(url, suite, component, "tool", "1.2-1", f"{url}key", signer.fingerprint, "")


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("shape", ["flat", "dists"])
def test_a_package_arrives(vendor, signers, tmp_path, shape: str, detached: bool) -> None:
    origin = publish(vendor, signers["vendor"], shape, detached=detached)
    facts = Archive(tmp_path).fetch(origin, tmp_path / "out", tmp_path / "partial")
    assert facts["deb"] == "tool_1.2-1_amd64.deb"
    assert facts["sha256"] == sha256(DEB)
    assert (tmp_path / "out" / facts["deb"]).read_bytes() == DEB


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_an_index_with_sha512_only(vendor, signers, tmp_path, ending: str) -> None:
    """As NVIDIA's is, which has no .gz either."""
    origin = publish(vendor, signers["vendor"], "flat")
    text = vendor.files.pop("/deb/Packages")
    del vendor.files["/deb/Packages.gz"]
    packed = {".gz": gzip.compress, ".xz": lzma.compress}[ending](text)
    files = {"": text, ending: packed}
    listed = "".join(f" {hashlib.sha512(it).hexdigest()} {len(it)} Packages{name}\n" for name, it in files.items())
    release = f"Origin: vendor\nDate: Thu, 02 Jan 2020 00:00:00 UTC\nSHA512:\n{listed}"
    vendor.files |= {
        f"/deb/Packages{ending}": packed,
        "/deb/InRelease": signers["vendor"]("--clearsign", stdin=release.encode()),
    }
    assert Archive(tmp_path).fetch(origin, tmp_path / "out", tmp_path / "partial")["sha256"] == sha256(DEB)
    vendor.files[f"/deb/Packages{ending}"] = flipped(packed)
    with pytest.raises(TrainyardError, match=rf"Packages{ending}\s+Hash Sum mismatch"):
        Archive(tmp_path).fetch(origin, tmp_path / "out2", tmp_path / "partial")


def test_settings_of_this_machine_have_no_say(vendor, signers, tmp_path, monkeypatch) -> None:
    (tmp_path / "apt.conf").write_text('Acquire::AllowInsecureRepositories "true"; Acquire::Check-Valid-Until "false";')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    origin = publish(vendor, signers["vendor"], "flat", extra="Valid-Until: Sat, 01 Feb 2020 00:00:00 UTC\n")
    for _ in range(2):
        with pytest.raises(TrainyardError, match="is expired"):
            Archive(tmp_path).stanza(origin)
    del vendor.files["/deb/InRelease"]
    with pytest.raises(TrainyardError, match=r"not signed|does not have a Release file"):
        Archive(tmp_path).stanza(origin)


def test_the_index_is_read_once_for_all_packages(vendor, signers, tmp_path) -> None:
    origin = publish(vendor, signers["vendor"], "flat")
    archive = Archive(tmp_path)
    for _ in range(2):
        archive.fetch(origin, tmp_path / "out", tmp_path / "partial")
    assert [path for _, path, _, _ in vendor.seen].count("/deb/InRelease") == 1


def test_a_key_of_the_project_is_taken(vendor, signers, tmp_path) -> None:
    origin = publish(vendor, signers["vendor"], "flat")
    (tmp_path / "vendor.asc").write_bytes(vendor.files.pop("/deb/key"))
    origin = Apt(**{**origin.__dict__, "key": "project:vendor.asc"})
    assert Archive(tmp_path).fetch(origin, tmp_path, tmp_path / "partial")["sha256"] == sha256(DEB)


@pytest.mark.parametrize("shape", ["flat", "dists"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("deb", f"expected was {sha256(DEB)}"),
        ("Packages.gz", r"Packages.gz\s+Hash Sum mismatch"),
        ("InRelease", "(?s)must sign: .*not signed"),
    ],
)
def test_a_flipped_bit_is_refused(vendor, signers, tmp_path, shape: str, path: str, message: str) -> None:
    origin = publish(vendor, signers["vendor"], shape)
    [place] = [name for name in vendor.files if name.endswith(path)]
    content = vendor.files[place]
    # In the middle of InRelease lies text, whose change the signature has to show.
    vendor.files[place] = flipped(content) if path != "InRelease" else content.replace(b"vendor", b"wendor", 1)
    with pytest.raises(TrainyardError, match=message) as failure:
        Archive(tmp_path).fetch(origin, tmp_path / "out", tmp_path / "partial")
    assert vendor.url in str(failure.value)
    assert not list((tmp_path / "out").glob("*")), "nothing that was refused stays"


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("signed_by", ["other", "expired"])
def test_only_the_given_key_counts(vendor, signers, tmp_path, signed_by: str, detached: bool) -> None:
    """The vendor's key is served, but another, or the same past its term, has signed."""
    origin = publish(vendor, signers[signed_by], "flat", detached=detached)
    wanted = signers["vendor" if signed_by == "other" else "expired"].fingerprint
    if signed_by == "other":
        vendor.files["/deb/key"] += signers["vendor"]("--armor", "--export")
    with pytest.raises(TrainyardError, match=f"(?s)the key {wanted} must sign: .*not signed"):
        Archive(tmp_path).fetch(Apt(**{**origin.__dict__, "signed_by": wanted}), tmp_path, tmp_path / "partial")


def test_text_around_the_signed_part_is_refused(vendor, signers, tmp_path) -> None:
    origin = publish(vendor, signers["vendor"], "flat")
    evil = b"evil"
    forged = f"SHA256:\n {sha256(evil)} 4 Packages.gz\n\n".encode()
    vendor.files |= {"/deb/InRelease": forged + vendor.files["/deb/InRelease"], "/deb/Packages.gz": evil}
    with pytest.raises(TrainyardError, match="apt refuses the index"):
        Archive(tmp_path).fetch(origin, tmp_path, tmp_path / "partial")


@pytest.mark.parametrize(
    ("change", "extra", "message"),
    [
        ({"version": "1.3-1"}, "", "has no tool 1.3-1 for amd64. Available versions: 1.2-1, 1.1-1."),
        ({"package": "tools"}, "", "has no tools 1.2-1 for amd64. Available versions: none."),
        ({"sha256": "1" * 64}, "", f"has the SHA-256 {sha256(DEB)}, expected was {'1' * 64}"),
        ({}, "Valid-Until: Sat, 01 Feb 2020 00:00:00 UTC\n", "is expired .invalid since"),
        ({"base": "https://127.0.0.1:9/"}, "", "apt refuses the index of https://127.0.0.1:9/.*refused"),
    ],
)
def test_refusals(vendor, signers, tmp_path, change: dict[str, str], extra: str, message: str) -> None:
    origin = publish(vendor, signers["vendor"], "flat", extra=extra)
    with pytest.raises(TrainyardError, match=message):
        Archive(tmp_path).fetch(Apt(**{**origin.__dict__, **change}), tmp_path, tmp_path / "partial")
