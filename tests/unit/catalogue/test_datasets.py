"""Where a training's data comes from: an image, a claim, or an archive that is imported."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.trainings.model import Import, Training
from trainyard.trainings.resolve import resolve
from trainyard.trainings.site_images import Defaults
from trainyard.trainings.spec import parse_training

BUNDLE = {"image_runtime": {"digest": "sha256:1"}, "image_set": {"digest": "sha256:2"}}
DATA = {"image": {"repository": "set", "artefact": "image_set"}}
ENTRY: dict[str, Any] = {
    "description": "A training",
    "kind": "training",
    "image": {"repository": "runtime", "artefact": "image_runtime"},
    "command": "python -m train",
    "flags": {"train_steps": 10},
    "limits": {"cpu": "2", "memory": "1Gi"},
}
OFFERED = {
    **ENTRY,
    "data": {**DATA, "url": "set.tar", "sha256": "ab" * 32, "folder": "set"},
}
PROGRAMS = {"image_tensorflow": {"digest": "sha256:5"}, "image_workloads": {"digest": "sha256:6"}}
SERVED = Defaults(
    "r", {**BUNDLE, **PROGRAMS}, {"claim": "training"}, archives="https://10.0.0.1/files", authority="PEM"
)


def sourced(data: Any) -> Training:
    return parse_training(resolve({"workload": "my_ps", "data": data}, OFFERED).bound(SERVED))


def test_an_entry_offers_several_sources_of_its_data() -> None:
    assert sourced({"source": "image"}).data_image == "r/set@sha256:2"
    claim = sourced({"claim": "mine"})
    assert (claim.data_image, claim.data_claim, claim.data_folder, claim.data_import) == ("", "mine", "", None)
    brought = sourced({"source": "import"})
    assert (brought.data_image, brought.data_claim, brought.data_folder) == ("", "datasets", "set")
    assert brought.data_import == Import(
        "https://10.0.0.1/files/set.tar", "ab" * 32, "r/tensorflow@sha256:5", "r/workloads@sha256:6", "PEM"
    )


def test_an_archive_of_another_server_has_not_our_authority() -> None:
    brought = sourced({"source": "import", "url": "https://example.org/set.tar", "claim": "mine"}).data_import
    assert brought and (brought.url, brought.authority) == ("https://example.org/set.tar", "")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"source": "import", "sha256": ""}, "data.sha256 is '': an import needs the SHA-256 of the archive"),
        ({"source": "import", "sha256": "ab"}, "data.sha256 is 'ab'"),
        ({"source": "import", "url": "ftp://example.org/x"}, "data.url is 'ftp://example.org/x'"),
        ({"source": "import", "folder": ""}, "data.folder is missing: an import needs a folder of its own"),
        ({"source": "import", "folder": "../set"}, "data.folder is '../set': it must be a folder of the claim"),
        ({"source": "import", "url": ""}, "data.url is missing: an import needs the http or https address"),
        ({"source": "imports"}, "source"),
        ({"source": "import", "sha265": "ab"}, "sha265"),
        ({"source": "claim"}, "data has no source, or several"),
    ],
)
def test_a_source_that_cannot_be_is_refused(data: dict[str, str], said: str) -> None:
    with pytest.raises(TrainyardError) as refused:
        sourced(data)
    assert said in str(refused.value)


def test_an_import_of_a_workload_that_names_no_archive() -> None:
    with pytest.raises(TrainyardError) as refused:
        parse_training(resolve({"workload": "my_ps", "data": "import"}, ENTRY).bound(SERVED))
    for said in ("data.url is missing", "data.sha256 is missing", "data.folder is missing"):
        assert said in str(refused.value)


def test_an_archive_that_the_site_should_serve_and_does_not() -> None:
    site = Defaults("r", {**BUNDLE, **PROGRAMS}, {"claim": "training"})
    with pytest.raises(TrainyardError, match=r"data.url is 'set.tar': .* this site serves no archives"):
        parse_training(resolve({"workload": "my_ps", "data": "import"}, OFFERED).bound(site))


def test_images_are_those_of_the_source() -> None:
    assert [each["artefact"] for each in resolve({"data": "import"}, OFFERED).images] == [
        "image_runtime", "image_tensorflow", "image_workloads", "image_tensorboard",
    ]  # fmt: skip
    assert [each["artefact"] for each in resolve({"data": {"claim": "c"}}, OFFERED).images] == [
        "image_runtime",
        "image_tensorboard",
    ]
    assert [each["artefact"] for each in resolve({}, OFFERED).images] == [
        "image_runtime",
        "image_set",
        "image_tensorboard",
    ]
