"""What a site says of all its trainings: where their images are served, where their files lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import TrainyardError

PACKED = "code"
"""Repository of the folders of code that were packed."""
NO_DIGEST = "sha256:" + "0" * 64
"""Of an image that is not made yet."""


@dataclass(frozen=True)
class Defaults:
    """What a site says of all its trainings.

    :param registry: registry and path under which the images are; empty where no registry serves them.
    :param artefacts: artefact -> what the bundle says of it, its digest above all.
    :param known: whether the bundle is made; before that, images have a digest of zeros.
    :param logs: where the runs' files lie; in `path` every run has a folder of its name.
    :param archives: address below which the site serves archives of data; empty where it serves none.
    :param authority: certificate authority of that server, as PEM.
    :param code: folder of code, as a training names it -> digest of the image that it was packed into.
    :param require_gpu: whether pods with GPUs must compute on them; else they run the image without CUDA, on the CPU.
    :param cuda: artefact -> version of CUDA in it, of the images that have it.
    """

    registry: str = ""
    artefacts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    logs: Mapping[str, Any] = field(default_factory=dict)
    known: bool = True
    archives: str = ""
    authority: str = ""
    code: Mapping[str, str] = field(default_factory=dict)
    require_gpu: bool = True
    cuda: Mapping[str, str] = field(default_factory=dict)

    def reference(self, image: Any) -> Any:
        """The reference of an image that the project makes or packs: by digest, so that a changed image is a new run.

        :param image: `{repository, artefact}` of the bundle, or a reference as it is.
        :raises TrainyardError: the bundle has no such image.
        """
        if not isinstance(image, Mapping):
            return image
        artefact = str(image.get("artefact"))
        digest = (self.artefacts.get(artefact) or {}).get("digest", "" if self.known else NO_DIGEST)
        if not digest:
            raise TrainyardError(
                f"The image {artefact} is not made.", remedy="Make it by playbooks/supply.yml, or name another image."
            )
        return self._named(str(image.get("repository")), digest)

    def has(self, artefact: str) -> bool:
        """Whether the bundle has an image, or will have it."""
        return not self.known or bool((self.artefacts.get(artefact) or {}).get("digest"))

    def packed(self, folder: str, run: str) -> str:
        """The reference of a folder of code that was packed.

        Where it is laid into the nodes, each run has a repository of its own: of one repository a node keeps the newest
        image alone, and another run's code must not go for it.
        """
        repository = PACKED if self.registry else f"{PACKED}/{run}"
        return self._named(repository, self.code.get(folder, NO_DIGEST))

    def archive(self, url: str) -> dict[str, str]:
        """Address and authority of an archive: without a server of its own it is one that the site serves."""
        if "://" not in url and url and self.archives:
            url = f"{self.archives}/{url}"
        ours = bool(self.archives) and url.startswith(f"{self.archives}/")
        return {"url": url, "authority": self.authority if ours else ""}

    def _named(self, repository: str, digest: str) -> str:
        # Images that no registry serves have a name that none could have.
        return f"{self.registry or 'localhost/trainyard'}/{repository}@{digest}"
