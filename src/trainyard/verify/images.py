"""Which images really run: the digests that the nodes report, against those that the lock and the bundle name.

What a node reports is the digest of what its registry served under the name. A vendor's tag leads to an index over all
platforms, whose digest the lock pins; the mirror serves one platform's manifest, whose digest the bundle records. So
each is compared with its like. The pause image is left out: the API does not say what a pod's sandbox runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..kube.api import Object
from .verdict import FAIL, PASS, UNKNOWN, Check


def images_locked(locked: Mapping[str, str], pods: Sequence[Object], own: Mapping[str, bool] | None = None) -> Check:
    """Every image that runs or is mounted has its locked digest; without a digest to compare the answer is open.

    An image that was named by digest, or comes from a registry of the site, is found by its path alone. What a training
    names by digest, and nobody else has pinned, is its own and may be what it is.

    :param locked: image reference to digest (`sha256:` and 64 hexadecimal digits).
    :param own: pods of trainings as `namespace/name` -> whether the run may have other images of ours than those that
        are locked, because it is older (it was left alone) or newer than they are.
    """
    if not locked:
        return Check(
            "images_locked", UNKNOWN, "no digest is known: they stand in the lock and in the receipt of site.yml"
        )
    by_image: dict[tuple[str, str], set[str]] = {}
    for reference, digest in locked.items():
        path, tag = image_version(reference)
        for key in ((path, tag), (path, "")):
            by_image.setdefault(key, set()).add(digest)
    wrong: dict[str, list[str]] = {}
    unpinned: dict[str, list[str]] = {}
    for pod, image, digest in running(pods):
        wanted = by_image.get(image_version(image), set())
        if digest in wanted or (not wanted and digest in locked.values()):
            continue
        # The node's own answer, and not only the name: what a training asks for by digest is what it has.
        if own and pod in own and digest and _digest(image) == digest and (own[pod] or not wanted):
            continue
        group = wrong if wanted and digest else unpinned
        text = f"{image} is {digest or 'of unknown digest'}"
        text += f", locked is {' or '.join(sorted(wanted))}" if wanted else ", which nobody has pinned"
        places = group.setdefault(text, [])
        places += [pod] if pod not in places else []
    if wrong or unpinned:
        told = "; ".join(f"{text} (in {', '.join(places)})" for text, places in {**wrong, **unpinned}.items())
        return Check("images_locked", FAIL if wrong else UNKNOWN, told)
    return Check("images_locked", PASS, "every image that runs has the digest of the lock")


def running(pods: Sequence[Object]) -> Iterator[tuple[str, str, str]]:
    """Pod as `namespace/name`, image as its specification names it, and the digest; empty if the node reports none."""
    for pod in pods:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        for kind in ("initContainer", "container", "ephemeralContainer"):
            images = {each["name"]: each["image"] for each in spec.get(f"{kind}s") or []}
            for each in status.get(f"{kind}Statuses") or []:
                # Empty until the image is there; `system_pods` says what is wrong then.
                if each.get("imageID"):
                    yield name, images[each["name"]], _digest(each["imageID"])
        for volume in spec.get("volumes") or []:
            if "image" in volume and status.get("containerStatuses"):
                yield name, volume["image"]["reference"], _digest(volume["image"]["reference"])


def image_version(image: str) -> tuple[str, str]:
    """Path without the registry, and tag, of an image's name; no tag where it is named by digest alone.

    `registry:5000/calico/node:v3.28.5@sha256:..` -> (`calico/node`, `v3.28.5`), `calico/node` -> (.., `latest`).
    """
    name, _, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    path, colon, tag = name.rpartition(":")
    return (path, tag) if colon else (name, "" if digest else "latest")


def _digest(name: str) -> str:
    """The digest in `registry/path@sha256:..`; without `@` it would be that of a configuration, which nobody pins."""
    return name.partition("@")[2]
