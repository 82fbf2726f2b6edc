"""The site settings, images and data sources that the description of a training refers to.

Parts: the site settings for all trainings; the images of a training; the sources of its data. The settings are the
registry of the images, and the storage of the runs' files. Role and GPUs select an image. The project builds some of
the images. Data comes from an image, from a claim, or from an archive that is imported onto a claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import TrainyardError
from ..core.untrusted import whole
from .names import GPU

PACKED = "code"
"""Repository of packed code folders."""
NO_DIGEST = "sha256:" + "0" * 64
"""Digest of an image that is not built yet."""


@dataclass(frozen=True)
class Defaults:
    """Site settings for all trainings.

    :param registry: registry and path of the images; empty if no registry serves them.
    :param artefacts: artefact -> its entry in the bundle, with at least its digest.
    :param known: whether the bundle is built; before that, images have a digest of zeros.
    :param logs: storage of the runs' files; every run has a folder of its name in `path`.
    :param archives: base URL of the site's archives of data; empty if it serves none.
    :param authority: certificate authority of that server, as PEM.
    :param code: code folder, as a training names it -> digest of the image that it was packed into.
    :param cuda: artefact -> its CUDA version, for images with CUDA.
    """

    registry: str = ""
    artefacts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    logs: Mapping[str, Any] = field(default_factory=dict)
    known: bool = True
    archives: str = ""
    authority: str = ""
    code: Mapping[str, str] = field(default_factory=dict)
    cuda: Mapping[str, str] = field(default_factory=dict)

    def reference(self, image: Any) -> Any:
        """Return the reference of an image of the bundle, by digest, so that a changed image is a new run.

        :param image: `{repository, artefact}` of the bundle, or a reference, which is returned unchanged.
        :raises TrainyardError: the bundle has no such image.
        """
        if not isinstance(image, Mapping):
            return image
        artefact = str(image.get("artefact"))
        digest = (self.artefacts.get(artefact) or {}).get("digest", "" if self.known else NO_DIGEST)
        if not digest:
            raise TrainyardError(
                f"The image {artefact} is not built.",
                remedy="Build it with playbooks/supply.yml, or set another image.",
            )
        return self._named(str(image.get("repository")), digest)

    def image(self, image: Mapping[str, Any]) -> str:
        """Return the reference of an image of a resolved training; empty for an optional image that is not built.

        :param image: `{repository, artefact}` and perhaps `optional`.
        """
        built = (self.artefacts.get(str(image.get("artefact"))) or {}).get("digest")
        return "" if image.get("optional") and self.known and not built else str(self.reference(image))

    def packed(self, folder: str, run: str) -> str:
        """Return the reference of a packed code folder.

        Without a registry, images are imported into the nodes, which keep only the newest image of a repository. So
        each run has its own repository; otherwise the code of one run would replace that of another.
        """
        repository = PACKED if self.registry else f"{PACKED}/{run}"
        return self._named(repository, self.code.get(folder, NO_DIGEST))

    def archive(self, url: str) -> dict[str, str]:
        """Return the URL and the certificate authority of an archive. A URL without a server is one of the site's."""
        if "://" not in url and url and self.archives:
            url = f"{self.archives}/{url}"
        ours = bool(self.archives) and url.startswith(f"{self.archives}/")
        return {"url": url, "authority": self.authority if ours else ""}

    def _named(self, repository: str, digest: str) -> str:
        # Images without a registry have a name that no registry can have.
        return f"{self.registry or 'localhost/trainyard'}/{repository}@{digest}"


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


def image_places(description: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield each mapping of a complete description that may name an image, with the key of the image."""
    for role in description["roles"]:
        yield role, "image"
        volumes = role.get("volumes")
        yield from (
            (each, "image") for each in (volumes if isinstance(volumes, list) else ()) if isinstance(each, Mapping)
        )
    if isinstance(description.get("data"), Mapping):
        yield from ((description["data"], key) for key in ("image", *IMPORTER))
    yield from ((description, key) for key in ("code", "tensorboard"))


def tensorboard_of(described: Mapping[str, Any]) -> Any:
    """Return the image of a run's TensorBoard; empty for none. A site may set its own image by reference.

    By default trainings have the project's TensorBoard and services do not. It is optional, unless a site requests it.
    """
    requested = described.get("tensorboard")
    if isinstance(requested, str):
        return requested
    if requested is True:
        return TENSORBOARD
    return {**TENSORBOARD, "optional": True} if requested is None and described.get("topology") != "service" else ""


IMPORT = "import"
SOURCES = {"image": "image", IMPORT: "url", "claim": "claim"}
"""Source of data -> the key that implies it."""
DATASETS = "datasets"
"""Default claim for imported data."""
IMPORTER = {
    "runtime": {"repository": "tensorflow", "artefact": "image_tensorflow"},
    "code": {"repository": "workloads", "artefact": "image_workloads"},
}
"""Images of an import: the Python runtime and the program."""


def with_source(described: Mapping[str, Any]) -> dict[str, Any]:
    """Add the source of the data to a description, from its short form or from the keys that are given."""
    data = described.get("data")
    if isinstance(data, str) and data:
        data = {"source": data}
    elif isinstance(data, Mapping) and data and "source" not in data:
        source = next((name for name, key in SOURCES.items() if data.get(key)), None)
        # The owner of a claim chooses its folders: the folder of the entry's import does not apply.
        data = {**({"folder": ""} if source == "claim" else {}), **data, **({"source": source} if source else {})}
    return {**described, **({"data": data} if data else {})}


def completed(data: Any) -> Any:
    """Return only the keys of a run's data source, without those of other sources that its entry offers."""
    if not isinstance(data, Mapping):
        return data
    known = {key: data.get(key) for key in ("image", "claim", "folder", "url", "sha256")}
    strange = {key: value for key, value in data.items() if key not in (*known, "source")}
    if data.get("source") == "image":
        return {**strange, "image": known["image"]}
    if data.get("source") == "claim":
        return {**strange, "claim": known["claim"], "folder": known["folder"]}
    if data.get("source") == IMPORT:
        found = {**strange, **known, **IMPORTER, "source": IMPORT}
        return {**found, "image": None, "claim": known["claim"] or DATASETS}
    return dict(data)
