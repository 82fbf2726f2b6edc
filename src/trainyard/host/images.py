"""Images that are imported into a node's containerd because no registry serves them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.plan import MISSING, Change, Plan, Step

CTR = ("ctr", "--namespace=k8s.io", "images")
"""containerd's own client, in the namespace whose images the kubelet uses."""
ASK_TIMEOUT = 60.0
PINNED = "io.cri-containerd.pinned"
"""Label that excludes an image from the kubelet's garbage collection (containerd, internal/cri/labels)."""


@dataclass(frozen=True)
class Image:
    """An image by digest, as pods reference it.

    :param reference: "localhost/trainyard/tensorflow@sha256:...".
    :param archive: OCI archive with this reference; empty if unavailable.
    """

    reference: str
    archive: str = ""

    @property
    def repository(self) -> str:
        return self.reference.partition("@")[0]

    @property
    def digest(self) -> str:
        return self.reference.partition("@")[2]


@dataclass(frozen=True)
class Found:
    """An image in containerd: its actual digest, whether it is complete, and whether it is pinned."""

    digest: str
    complete: bool
    pinned: bool


def observe(*, may_be_absent: bool = False) -> dict[str, Found]:
    """Return the images of the node by reference.

    :param may_be_absent: return no images, instead of an error, if containerd does not answer.
    :raises CommandError: containerd does not answer.
    """
    try:
        listed = run([*CTR, "list"], timeout=ASK_TIMEOUT).stdout
        checked = run([*CTR, "check"], timeout=ASK_TIMEOUT).stdout
    except CommandError:
        if may_be_absent:
            return {}
        raise
    return parse(listed, checked)


def parse(listed: str, checked: str) -> dict[str, Found]:
    """Parse the output of `ctr images list` and `ctr images check`: tables with a header and columns of any width.

    :param listed: columns REF TYPE DIGEST SIZE PLATFORMS LABELS.
    :param checked: columns REF TYPE DIGEST STATUS SIZE UNPACKED; the status of a complete image is "complete (4/4)".
    """
    complete = {line.split()[0] for line in checked.splitlines()[1:] if " complete (" in line}
    rows = [line.split() for line in listed.splitlines()[1:]]
    return {
        row[0]: Found(row[2], row[0] in complete, f"{PINNED}=pinned" in row[-1].split(","))
        for row in rows
        if len(row) >= 3
    }


def missing(wanted: Sequence[Image], seen: dict[str, Found]) -> list[str]:
    """Return the references of the desired images that must be delivered."""
    return [
        image.reference
        for image in wanted
        if (found := seen.get(image.reference)) is None or not found.complete or found.digest != image.digest
    ]


def make_plan(wanted: Sequence[Image], seen: dict[str, Found], *, timeout: float) -> Plan:
    """Plan to import missing images and to pin the desired ones.

    Older images of the same repositories are unpinned. The kubelet collects them when the disk fills, but never one
    that a running pod uses.

    :param timeout: seconds for one import.
    """
    lacking = missing(wanted, seen)
    references = {image.reference for image in wanted}
    repositories = {image.repository for image in wanted}
    steps = []
    for image in wanted:
        if image.reference in lacking:
            there = "another or incomplete" if image.reference in seen else MISSING
            change = Change(f"image {image.reference}", there, "pinned")
            steps.append(Step(f"Import {image.reference}", partial(_import, image, timeout), [change]))
        elif not seen[image.reference].pinned:
            change = Change(f"image {image.reference}", "not pinned", "pinned")
            steps.append(Step(f"Pin {image.reference}", partial(_label, image.reference, "pinned"), [change]))
    steps += [
        Step(
            f"Unpin {reference} for the kubelet's garbage collection",
            partial(_label, reference, ""),
            [Change(f"image {reference}", "pinned", "not pinned")],
        )
        for reference, found in seen.items()
        if found.pinned and reference not in references and reference.partition("@")[0] in repositories
    ]
    before = {
        reference: found.pinned for reference, found in seen.items() if reference.partition("@")[0] in repositories
    }
    after = {**dict.fromkeys(before, False), **dict.fromkeys(sorted(references), True)}
    return Plan(steps, {"pinned": before}, {"pinned": after}, by_subject=False)


def _import(image: Image, timeout: float) -> None:
    """Import an archive. containerd verifies each blob; afterwards the image's digest is checked."""
    if not os.path.isfile(image.archive):
        raise TrainyardError(f"The archive of {image.reference}, {image.archive or 'none'}, does not exist.")
    run([*CTR, "import", f"--label={PINNED}=pinned", image.archive], timeout=timeout)
    if image.reference in missing([image], observe()):
        raise TrainyardError(
            f"The archive {image.archive} is not the image {image.reference}.",
            remedy="Run the role bundle again: it detects a damaged image and builds it again.",
        )


def _label(reference: str, value: str) -> None:
    run([*CTR, "label", reference, f"{PINNED}={value}"], timeout=ASK_TIMEOUT)
