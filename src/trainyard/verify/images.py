"""Compare the digests of running images, as nodes report them, with the lock and the bundle.

A node reports the digest that its registry served under the name. A vendor's tag resolves to a multi-platform index,
whose digest the lock pins. The mirror serves the manifest of one platform, whose digest the bundle records. Either
digest is accepted for an image. The pause image is left out, because the API does not report the image of a sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..kube.api import Object
from ..trainings.template import CODE_VOLUME
from .verdict import FAIL, PASS, UNKNOWN, Check


def images_locked(locked: Mapping[str, str], pods: Sequence[Object], own: Mapping[str, bool] | None = None) -> Check:
    """Check that each running or mounted image has its locked digest; unknown if there is no digest to compare.

    An image that is named by digest, or comes from a registry of the site, is matched by its path only. An image that a
    training names by digest, and that is not pinned elsewhere, is accepted. So is the project's code of another
    release: an upgrade of the project repeats no run (`trainings/earlier_code.py`).

    :param locked: image reference -> digest (`sha256:` and 64 hexadecimal digits).
    :param own: pods of trainings as `namespace/name` -> whether the run may have other images of this project than the
        locked ones. It may if it is older (it was left unchanged) or newer.
    """
    if not locked:
        return Check("images_locked", UNKNOWN, "no digest is known; the lock and the receipt of site.yml contain them")
    by_image: dict[tuple[str, str], set[str]] = {}
    for reference, digest in locked.items():
        path, tag = image_version(reference)
        for key in ((path, tag), (path, "")):
            by_image.setdefault(key, set()).add(digest)
    wrong: dict[str, list[str]] = {}
    unpinned: dict[str, list[str]] = {}
    for pod, image, digest, is_code in running(pods):
        wanted = by_image.get(image_version(image), set())
        if digest in wanted or (not wanted and digest in locked.values()):
            continue
        # Compare the digest that the node reports too, not only the name: it proves that the training runs that image.
        if own and pod in own and digest and _digest(image) == digest and (own[pod] or is_code or not wanted):
            continue
        group = wrong if wanted and digest else unpinned
        text = f"{image} is {digest or 'of unknown digest'}"
        text += f" instead of {' or '.join(sorted(wanted))}" if wanted else ", which is not pinned"
        places = group.setdefault(text, [])
        places += [pod] if pod not in places else []
    if wrong or unpinned:
        told = "; ".join(f"{text} (in {', '.join(places)})" for text, places in {**wrong, **unpinned}.items())
        return Check("images_locked", FAIL if wrong else UNKNOWN, told)
    return Check("images_locked", PASS, "every running image has the digest of the lock")


def running(pods: Sequence[Object]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield pod as `namespace/name`, image of the specification, digest, and whether it is a run's image of code.

    The digest is empty if it is not reported.
    """
    for pod in pods:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        for kind in ("initContainer", "container", "ephemeralContainer"):
            images = {each["name"]: each["image"] for each in spec.get(f"{kind}s") or []}
            for each in status.get(f"{kind}Statuses") or []:
                # Empty until the image is pulled; `system_pods` reports that case.
                if each.get("imageID"):
                    yield name, images[each["name"]], _digest(each["imageID"]), False
        for volume in spec.get("volumes") or []:
            if "image" in volume and status.get("containerStatuses"):
                reference = volume["image"]["reference"]
                yield name, reference, _digest(reference), volume["name"] == CODE_VOLUME


def image_version(image: str) -> tuple[str, str]:
    """Return (path without registry, tag) of an image's name; the tag is empty if it is named by digest only.

    `registry:5000/calico/node:v3.28.5@sha256:..` -> (`calico/node`, `v3.28.5`), `calico/node` -> (.., `latest`).
    """
    name, _, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    path, colon, tag = name.rpartition(":")
    return (path, tag) if colon else (name, "" if digest else "latest")


def _digest(name: str) -> str:
    """Return the digest in `registry/path@sha256:..`; without `@` it would be that of a configuration, never pinned."""
    return name.partition("@")[2]
