"""Changes of a version in the lock: what follows, what loses its pin, and what stays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import lock
from trainyard.bundle import lockfile
from trainyard.core.errors import TrainyardError

ROOT = Path(__file__).resolve().parents[3]
LOCK = (ROOT / "bundle.lock.yml").read_text(encoding="utf-8")
BUILT = {
    "kubernetes": {
        "kubernetes",
        "deb_kubelet",
        "deb_kubeadm",
        "deb_kubectl",
        "kubectl",
        "image_kube_proxy",
        "image_kube_scheduler",
    },
    "cri_tools": {"cri_tools", "deb_cri_tools"},
    "containerd": {"containerd", "deb_containerd"},
    "jobset": {"jobset", "jobset_manifest", "image_jobset"},
}


def entries(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)["artefacts"]
    return found


def next_patch(name: str) -> str:
    major, minor, patch = lock.number(str(entries(LOCK)[name]["version"])).split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


@pytest.mark.parametrize("name", BUILT)
def test_what_is_made_from_an_artefact_follows(name: str, tmp_path: Path) -> None:
    old, new = lock.number(str(entries(LOCK)[name]["version"])), next_patch(name)
    text, changed = lock.bump(LOCK, name, new)
    assert set(changed) >= BUILT[name]
    (tmp_path / "bundle.lock.yml").write_text(text, encoding="utf-8")
    read, before, after = lockfile.load(tmp_path / "bundle.lock.yml"), entries(LOCK), entries(text)
    for each in changed:
        assert after[each]["version"] == before[each]["version"].replace(old, new)
        assert old not in yaml.safe_dump(after[each])
        origin = read[each].origin
        assert origin is None or "apt" in after[each]["upstream"] or not origin.pinned, "an old hash is no pin"
    assert {each for each in before if before[each] != after[each]} == set(changed)


def test_the_repository_of_a_minor_version_moves_with_it() -> None:
    version = lock.number(str(entries(LOCK)["kubernetes"]["version"]))
    major, minor, _ = version.split(".")
    text, changed = lock.bump(LOCK, "kubernetes", f"v{major}.{int(minor) + 1}.0")
    assert f"/v{major}.{minor}/" not in text and f"/v{major}.{int(minor) + 1}/" in text
    assert "deb_cri_tools" not in changed, "its own version stays"


def test_a_version_is_no_part_of_a_longer_one() -> None:
    assert (
        lock.replaced("1.2.3 v1.2.3-1.1 11.2.3 1.2.33 1.2.3.4", "1.2.3", "1.2.4")
        == "1.2.4 v1.2.4-1.1 11.2.3 1.2.33 1.2.3.4"
    )


def test_a_package_provides_the_version_that_it_contains() -> None:
    new = next_patch("runc")
    text, _ = lock.bump(LOCK, "runc", new)
    assert f"runc (= {new})" in entries(text)["deb_containerd"]["control"]["Provides"]


def test_only_comments_about_a_dropped_hash_go() -> None:
    block = (
        "  a:\n    # stays\n    version: v1.2.3\n    upstream:\n      # two records\n      downloads:\n"
        f"        - url: >-\n            https://x/v1.2.3#sha256={'0' * 64}\n"
        "          # NVIDIA's key\n          signed_by: ABC\n"
    )
    text, _ = lock.bump(f"artefacts:\n{block}", "a", "1.2.4")
    assert "# stays" in text and "# NVIDIA's key" in text and "two records" not in text
    assert "https://x/v1.2.4#sha256=unpinned" in text


def test_a_version_that_go_does_not_have_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / lock.WRAPPERS / "runc"
    wrapper.mkdir(parents=True)
    old = lock.number(str(entries(LOCK)["runc"]["version"]))
    (wrapper / "go.mod").write_text(f"require github.com/opencontainers/runc v{old}\n", encoding="utf-8")
    (tmp_path / "bundle.lock.yml").write_text(LOCK, encoding="utf-8")

    def refuse(*words: str, folder: Path) -> str:
        raise TrainyardError("unknown revision")

    monkeypatch.setattr(lock, "_go", refuse)
    with pytest.raises(TrainyardError, match="unknown revision"):
        lock.change(tmp_path, "runc", next_patch("runc"), modules=True)
    assert (tmp_path / "bundle.lock.yml").read_text(encoding="utf-8") == LOCK
    assert f"v{old}" in (wrapper / "go.mod").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("calico", "3.28.6", "a commit, not a release"),
        ("kubernets", "1.2.3", "no entry kubernets"),
        ("kubernetes", "next", "next is not a version"),
        ("kubernetes", str(entries(LOCK)["kubernetes"]["version"]), "already"),
    ],
)
def test_what_cannot_be_changed_is_refused(name: str, version: str, message: str) -> None:
    with pytest.raises(TrainyardError, match=message):
        lock.bump(LOCK, name, version)


def test_wrappers_name_the_locked_version() -> None:
    """So a change of the lock without one of the modules is found."""
    wrappers = {
        name: entry for name, entry in entries(LOCK).items() if entry["kind"] == "go_programs" and "wrapper" in entry
    }
    assert len(wrappers) > 8
    for entry in wrappers.values():
        assert lock.main_module(ROOT, entry, lock.number(str(entry["version"])))


def test_the_modules_of_kubernetes_are_read_from_its_own_file() -> None:
    block = "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tother => other v1.0.0\n)\n"
    text = f"{block}replace k8s.io/kms => ./staging/src/k8s.io/kms\n"
    assert lock.STAGING.findall(text) == ["k8s.io/api", "k8s.io/kms"]
    assert re.search(r"k8s\.io/api => k8s\.io/api v0\.", (ROOT / lock.WRAPPERS / "kubernetes" / "go.mod").read_text())
