"""The lookups that roles take versions, digests and package repositories from."""

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleLookupError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from checkout import ROOT

from plugins.lookup import locked_cuda, locked_images, locked_origin, locked_version

ARTEFACTS = yaml.safe_load((ROOT / "bundle.lock.yml").read_text(encoding="utf-8"))["artefacts"]


def look(plugin, *terms: str, **variables: str):
    variables = {name: trust_as_template(text) for name, text in variables.items()}
    return plugin.LookupModule(templar=Templar(DataLoader(), variables=variables)).run(list(terms), variables)


def test_versions_are_the_locks_without_a_leading_v() -> None:
    names = ["kubernetes", "deb_kubelet", "pause"]
    found = look(locked_version, *names)
    assert [ARTEFACTS[name]["version"].removeprefix("v") for name in names] == found
    assert not any(version.startswith("v") for version in found)


@pytest.mark.parametrize("plugin", [locked_version, locked_images, locked_origin])
def test_an_unknown_artefact_is_an_error(plugin) -> None:
    with pytest.raises(AnsibleLookupError, match="no artefact nonsense"):
        look(plugin, "nonsense")


def test_images_with_the_digests_that_are_pinned() -> None:
    (found,) = look(locked_images)
    pinned = {name: str(entry.get("upstream", {}).get("image", "")) for name, entry in ARTEFACTS.items()}
    known = dict(each.split("@") for each in pinned.values() if "@sha256:" in each)
    assert found == known and len(known) > 10
    assert not [name for name in found if name.startswith("docker.io/calico")], "no registry's digest is known"
    assert {len(digest) for digest in found.values()} == {71}
    reference, digest = pinned["image_pause"].split("@")
    assert look(locked_images, "image_pause") == [{reference: digest}]


def test_cuda_of_images_and_of_those_that_stand_on_them() -> None:
    (found,) = look(locked_cuda)
    version = ARTEFACTS["image_tensorflow_gpu"]["arguments"]["CUDA"]
    assert found == {"image_tensorflow_gpu": version, "image_notebook_gpu": version}


def test_the_repository_of_a_package() -> None:
    flat, suite = look(locked_origin, "deb_kubelet", "deb_containerd")
    assert flat["apt"] == ARTEFACTS["deb_kubelet"]["upstream"]["apt"]
    assert (flat["suite"], flat["component"], len(flat["signed_by"])) == ("/", "", 40)
    assert (suite["suite"], suite["component"]) == ("trixie", "stable")
    with pytest.raises(AnsibleLookupError, match="no apt repository for pause"):
        look(locked_origin, "pause")


def test_a_site_with_a_lock_of_its_own_gets_that(tmp_path) -> None:
    (tmp_path / "lock.yml").write_text("artefacts: {kubernetes: {version: v1.99.0}}\n")
    assert look(locked_version, "kubernetes", bundle_lock="{{ here }}/lock.yml", here=str(tmp_path)) == ["1.99.0"]
    own = "{{ bundle_project }}/bundle.lock.yml"
    assert look(locked_version, "pause", bundle_lock=own) == [ARTEFACTS["pause"]["version"]]
    with pytest.raises(AnsibleLookupError, match=r"gone.yml \(bundle_lock\) cannot be read"):
        look(locked_version, "pause", bundle_lock=str(tmp_path / "gone.yml"))
