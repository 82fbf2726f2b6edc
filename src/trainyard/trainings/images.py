"""Which images a training runs: by its roles, by the GPUs that they have, and which of them the project makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.untrusted import whole
from .names import GPU
from .references import Defaults

TENSORBOARD = {"repository": "tensorboard", "artefact": "image_tensorboard"}
"""What shows the files of trainings, where nobody says that it should not."""


def asked_gpus(role: Mapping[str, Any]) -> int:
    """GPUs that each pod of a role asks for; 0 where that is no number, which is refused elsewhere."""
    limits = role.get("limits")
    asked = (role.get("gpus"), limits.get(GPU) if isinstance(limits, Mapping) else 0)
    return max(whole(each, 0) or 0 for each in asked)


def image_of(role: Mapping[str, Any], require_gpu: bool) -> Any:
    """The image of a role: that for GPUs, where it has one and its pods must compute on theirs.

    :param require_gpu: as the site has it.
    :return: a reference, or repository and artefact of the bundle.
    """
    image = role.get("image")
    if not isinstance(image, Mapping):
        return image
    for_gpus = image.get("gpu") if require_gpu and asked_gpus(role) else None
    return for_gpus or {key: value for key, value in image.items() if key != "gpu"}


def made(described: Any) -> list[dict[str, str]]:
    """Repository and artefact of every image in a description that the project makes."""
    found: dict[str, dict[str, str]] = {}

    def look(value: Any) -> None:
        if isinstance(value, Mapping):
            if {"repository", "artefact"} <= value.keys():
                found[str(value["artefact"])] = {key: str(value[key]) for key in ("repository", "artefact")}
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(described)
    return list(found.values())


def shows_files(described: Mapping[str, Any]) -> bool:
    """Whether a run has the project's TensorBoard: every training that is not told otherwise, and no service."""
    said = described.get("tensorboard")
    return bool(said is True or (said is None and described.get("topology") != "service"))


def tensorboard_of(described: Mapping[str, Any], site: Defaults) -> str:
    """The image of a run's TensorBoard; empty for none. One of the site's own may be named by its reference."""
    said = described.get("tensorboard")
    if isinstance(said, str):
        return said
    wanted = shows_files(described) and (said or site.has(TENSORBOARD["artefact"]))
    return str(site.reference(TENSORBOARD)) if wanted else ""
