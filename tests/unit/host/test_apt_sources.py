"""host_files with apt_sources_once: what becomes of an entry of the host's owner; judged by apt itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.bundle.test_keys import make_key
from trainyard.host import apt_sources
from trainyard.host.apt_sources import FOLDER, settle
from trainyard.host.config_files import MARKER, File, HostFiles

DOCKER = "https://download.docker.com/linux/debian"
DEBIAN = "deb http://deb.debian.org/debian bookworm main\n"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Key files of a vendor, armored and not, of somebody else, and of both in one file."""
    folder = tmp_path_factory.mktemp("keys")
    (vendor, _), (other, _) = make_key(folder, "vendor"), make_key(folder, "other")
    binary = folder / "vendor.gpg"
    gpg = subprocess.run(["gpg", "--dearmor"], input=vendor.read_bytes(), capture_output=True, check=True, timeout=60)
    binary.write_bytes(gpg.stdout)
    both = folder / "both.asc"
    both.write_bytes(vendor.read_bytes() + other.read_bytes())
    return {"vendor": vendor, "binary": binary, "other": other, "both": both, "missing": folder / "missing.asc"}


def ours(key: Path, uri: str = f"{DOCKER}/", suite: str = "bookworm", components: str = "Components: stable\n") -> File:
    lines = "".join(f" {line.strip() or '.'}\n" for line in key.read_text().strip().splitlines())
    text = f"# {MARKER}\nTypes: deb\nURIs: {uri}\nSuites: {suite}\n{components}Signed-By:\n{lines}"
    return File(f"{FOLDER}trainyard-docker.sources", text)


class Host:
    """apt's folders below a root, with the files of the host's owner."""

    def __init__(self, root: Path, **texts: str) -> None:
        self.root = root
        self.parts = root / "etc/apt/sources.list.d"
        self.parts.mkdir(parents=True)
        for folder in ("var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "etc/apt/preferences.d"):
            (root / folder).mkdir(parents=True)
        for name, text in texts.items():
            self.path(name).write_text(text)

    def path(self, name: str) -> Path:
        return self.root / "etc/apt/sources.list" if name == "sources_list" else self.parts / name.replace("_", ".")

    def run(self, wanted: File) -> tuple[list[str], bool]:
        """What is done, and whether our file is there afterwards."""
        found = [str(path) for path in [self.path("sources_list"), *self.parts.glob("*[!d]")] if path.is_file()]
        settled = settle([wanted], found)
        target = self.parts / Path(wanted.path).name
        plan = settled.plan()
        plan.execute()
        target.unlink(missing_ok=True)
        for file in settled.files:
            target.write_text(file.content)
        return plan.done, target.exists()

    def apt(self) -> subprocess.CompletedProcess[str]:
        argv = ["apt-get", "-o", f"Dir={self.root}", "-o", "APT::Sandbox::User=root", "--print-uris", "update"]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, env={"LC_ALL": "C"})

    def releases(self) -> list[str]:
        """What apt would fetch first: one file for each repository that it reads."""
        shown = self.apt()
        assert shown.returncode == 0, shown.stderr
        places = [line.split("'")[1] for line in shown.stdout.splitlines()]
        return sorted(place.removesuffix("/InRelease") for place in places if place.endswith("/InRelease"))


def line(key: Path, options: str = "arch=amd64 signed-by={}", uri: str = DOCKER, rest: str = "bookworm stable") -> str:
    return f"deb [{options.format(key)}] {uri} {rest}\n"


def stanza(key: Path, uris: str = DOCKER, suites: str = "bookworm", more: str = "") -> str:
    return f"Types: deb\nURIs: {uris}\nSuites: {suites}\nComponents: stable\nSigned-By: {key}\n{more}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docker_list", lambda keys: line(keys["vendor"])),
        ("docker_list", lambda keys: line(keys["binary"], uri=f"{DOCKER}/")),
        ("docker_list", lambda keys: line(keys["vendor"], rest="bookworm stable test # mine")),
        ("sources_list", lambda keys: DEBIAN + line(keys["vendor"])),
        ("docker_sources", lambda keys: stanza(keys["binary"])),
        ("docker_sources", lambda keys: ours(keys["vendor"]).content.removeprefix(f"# {MARKER}\n")),
    ],
)
def test_an_entry_with_the_same_key_is_used(tmp_path: Path, keys: dict[str, Path], name: str, text) -> None:
    host = Host(tmp_path, **{name: text(keys)})
    assert host.run(ours(keys["vendor"])) == ([], False)
    assert host.path(name).read_text() == text(keys)
    assert host.apt().returncode == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docker_list", lambda keys: line(keys["other"])),
        ("docker_list", lambda keys: line(keys["both"])),
        ("docker_list", lambda keys: line(keys["missing"])),
        ("zz_list", lambda keys: f"deb {DOCKER} bookworm stable\n"),
        ("docker_list", lambda keys: line(keys["vendor"], "trusted=yes signed-by={}")),
        ("docker_list", lambda keys: line(keys["vendor"], "arch=s390x signed-by={}")),
        ("docker_list", lambda keys: line(keys["vendor"], rest="bookworm test")),
        ("docker_list", lambda keys: line(keys["vendor"]) + line(keys["other"], uri=f"{DOCKER}/")),
        ("docker_list", lambda keys: line(keys["vendor"]).replace("deb [", "deb-src [")),
        ("docker_sources", lambda keys: stanza(keys["other"])),
        ("docker_sources", lambda keys: stanza(keys["vendor"], more="Trusted: yes\n")),
    ],
)
def test_any_other_entry_is_set_aside(tmp_path: Path, keys: dict[str, Path], name: str, text) -> None:
    host = Host(tmp_path, **{name: text(keys)})
    wanted = ours(keys["vendor"])
    (host.parts / "trainyard-docker.sources").write_text(wanted.content)
    before = host.apt()
    assert before.returncode == 100, "else apt would take both, and the test shows nothing"
    assert "Conflicting values set for option" in before.stderr
    path = host.path(name)
    done, written = host.run(wanted)
    assert (done, written) == ([f"Rename {path} to {path}.disabled"], True)
    assert host.apt().returncode == 0
    assert Path(f"{path}.disabled").read_text() == text(keys)
    assert host.run(wanted) == ([], True)
    assert {each.name for each in host.parts.iterdir()} == {f"{path.name}.disabled", "trainyard-docker.sources"}


def test_the_module_plans_both_and_writes_the_host_s_entry_first(
    tmp_path: Path, keys: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path, docker_list=line(keys["other"]))
    path, target = host.path("docker_list"), host.parts / "trainyard-docker.sources"
    monkeypatch.setattr(apt_sources, "FOLDER", f"{host.parts}/")
    monkeypatch.setattr(apt_sources, "source_files", lambda: [str(each) for each in host.parts.glob("*[!d]")])

    def run() -> tuple[list[str], list[str]]:
        wanted = HostFiles([File(str(target), ours(keys["vendor"]).content)], stale=[f"{host.parts}/trainyard-*"])
        plan = apt_sources.plan_once(wanted)
        plan.execute()
        return plan.done, wanted.changed_paths

    assert run() == ([f"Rename {path} to {path}.disabled", f"Write {target}"], [str(path), str(target)])
    assert run() == ([], [])
    # The owner's entry comes back with the right key: ours goes.
    path.write_text(line(keys["vendor"]))
    assert run() == ([f"Remove stale {target}"], [str(target)])
    assert run() == ([], [])
    assert host.releases() == [f"{DOCKER}/dists/bookworm"]


def test_http_beside_https_is_one_repository(tmp_path: Path, keys: dict[str, Path]) -> None:
    host = Host(tmp_path, docker_list=line(keys["vendor"], uri=DOCKER.replace("https:", "http:")))
    assert host.run(ours(keys["vendor"]))[1]
    assert host.releases() == [f"{DOCKER}/dists/bookworm"]


def test_the_other_lines_of_a_file_stay(tmp_path: Path, keys: dict[str, Path]) -> None:
    text = f"# Mine.\n{DEBIAN}{line(keys['other'])}deb-src http://deb.debian.org/debian bookworm main\n"
    host = Host(tmp_path, sources_list=text)
    path = host.path("sources_list")
    path.chmod(0o640)
    assert host.run(ours(keys["vendor"]))[0] == [f"Copy {path} to {path}.disabled, and remove our repositories"]
    assert path.read_text() == text.replace(line(keys["other"]), "")
    assert Path(f"{path}.disabled").read_text() == text
    assert path.stat().st_mode & 0o777 == 0o640
    assert host.releases() == ["http://deb.debian.org/debian/dists/bookworm", f"{DOCKER}/dists/bookworm"]
    assert host.run(ours(keys["vendor"])) == ([], True)


def test_the_other_repositories_of_a_stanza_stay(tmp_path: Path, keys: dict[str, Path]) -> None:
    text = stanza(keys["other"], f"{DOCKER}\n https://example.com/debian", "bookworm trixie", "# Mine.\nTrusted: yes\n")
    host = Host(tmp_path, many_sources=f"{text}\n{stanza(keys['other'], 'https://example.org/x')}")
    assert host.run(ours(keys["vendor"]))[1]
    assert host.releases() == [
        f"{DOCKER}/dists/bookworm",
        f"{DOCKER}/dists/trixie",
        "https://example.com/debian/dists/bookworm",
        "https://example.com/debian/dists/trixie",
        "https://example.org/x/dists/bookworm",
    ]
    kept = host.path("many_sources").read_text()
    assert kept.count("Trusted: yes\n") == kept.count("# Mine.\n") == 2
    assert host.run(ours(keys["vendor"])) == ([], True)
