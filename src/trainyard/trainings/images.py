"""The images of a training: selected by role and GPUs, and which of them the project builds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.untrusted import whole
from .names import GPU
from .references import Defaults

TENSORBOARD = {"repository": "tensorboard", "artefact": "image_tensorboard"}
"""Image that shows the files of trainings unless a description disables it."""


def asked_gpus(role: Mapping[str, Any]) -> int:
    """Return the GPUs that each pod of a role requests; 0 for an invalid value, which is refused elsewhere."""
    limits = role.get("limits")
    asked = (role.get("gpus"), limits.get(GPU) if isinstance(limits, Mapping) else 0)
    return max(whole(each, 0) or 0 for each in asked)


def image_of(role: Mapping[str, Any], require_gpu: bool) -> Any:
    """Return the image of a role: its GPU image if it has one and its pods must compute on their GPUs.

    :param require_gpu: the site's setting.
    :return: a reference, or repository and artefact of the bundle.
    """
    image = role.get("image")
    if not isinstance(image, Mapping):
        return image
    for_gpus = image.get("gpu") if require_gpu and asked_gpus(role) else None
    return for_gpus or {key: value for key, value in image.items() if key != "gpu"}


def made(described: Any) -> list[dict[str, str]]:
    """Return repository and artefact of every image in a description that the project builds."""
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
    """Return whether a run has the project's TensorBoard: by default trainings do and services do not."""
    said = described.get("tensorboard")
    return bool(said is True or (said is None and described.get("topology") != "service"))


def tensorboard_of(described: Mapping[str, Any], site: Defaults) -> str:
    """Return the image of a run's TensorBoard; empty for none. A site may set its own image by reference."""
    said = described.get("tensorboard")
    if isinstance(said, str):
        return said
    wanted = shows_files(described) and (said or site.has(TENSORBOARD["artefact"]))
    return str(site.reference(TENSORBOARD)) if wanted else ""
