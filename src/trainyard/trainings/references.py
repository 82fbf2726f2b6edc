"""Site settings for all trainings: the registry of their images, and the storage of their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import TrainyardError

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
    :param require_gpu: whether pods with GPUs must compute on them; else they run the image without CUDA, on the CPU.
    :param cuda: artefact -> its CUDA version, for images with CUDA.
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

    def has(self, artefact: str) -> bool:
        """Return whether the bundle has an image, or will have it."""
        return not self.known or bool((self.artefacts.get(artefact) or {}).get("digest"))

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
