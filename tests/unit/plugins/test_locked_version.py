"""The lookup that roles take their versions from."""

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleLookupError
from checkout import ROOT

from plugins.lookup.locked_version import LookupModule

ARTEFACTS = yaml.safe_load((ROOT / "bundle.lock.yml").read_text(encoding="utf-8"))["artefacts"]


def test_versions_are_the_locks_without_a_leading_v() -> None:
    names = ["kubernetes", "deb_kubelet", "pause"]
    found = LookupModule().run(names)
    assert [ARTEFACTS[name]["version"].removeprefix("v") for name in names] == found
    assert not any(version.startswith("v") for version in found)


def test_an_unknown_artefact_is_an_error() -> None:
    with pytest.raises(AnsibleLookupError, match="no artefact nonsense"):
        LookupModule().run(["nonsense"])
