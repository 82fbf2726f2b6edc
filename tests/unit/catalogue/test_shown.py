"""Which trainings have their files shown by TensorBoard, and by which image."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.catalogue.test_complete import BUNDLE, SITE, described
from trainyard.core.errors import TrainyardError
from trainyard.trainings.site_images import Defaults

BOARD = {"image_tensorboard": {"digest": "sha256:b"}}


@pytest.mark.parametrize(
    ("bundle", "wanted", "image"),
    [
        ({**BUNDLE, **BOARD}, {}, "r/tensorboard@sha256:b"),
        ({**BUNDLE, **BOARD}, {"tensorboard": True}, "r/tensorboard@sha256:b"),
        ({**BUNDLE, **BOARD}, {"tensorboard": False}, ""),
        ({**BUNDLE, **BOARD}, {"tensorboard": "mine/board:1"}, "mine/board:1"),
        # Nobody has asked for it, and nobody has made it.
        (BUNDLE, {}, ""),
    ],
)
def test_tensorboard_shows_the_files_unless_told_otherwise(
    bundle: dict[str, Any], wanted: dict[str, Any], image: str
) -> None:
    assert described(Defaults("r", bundle, SITE.logs), **wanted).tensorboard == image


def test_tensorboard_that_is_asked_for_has_to_be_made() -> None:
    with pytest.raises(TrainyardError, match="image_tensorboard is not built"):
        described(Defaults("r", BUNDLE, SITE.logs), tensorboard=True)
