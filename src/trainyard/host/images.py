"""Images that are laid into a node's containerd because no registry serves them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..core.command import run
from ..core.errors import CommandError, TrainyardError
from ..core.plan import MISSING, Change, Plan, Step

CTR = ("ctr", "--namespace=k8s.io", "images")
"""containerd's own client, in the namespace whose images the kubelet sees."""
ASK_TIMEOUT = 60.0
PINNED = "io.cri-containerd.pinned"
"""Label with which the kubelet never collects an image as garbage (containerd, internal/cri/labels)."""


@dataclass(frozen=True)
class Image:
    """An image as pods name it, by digest.

    :param reference: "localhost/trainyard/tensorflow@sha256:...".
    :param archive: OCI archive that names it so; empty where it is not at hand.
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
    """An image in containerd: the digest that it really has, whether it is whole, and whether it is pinned."""

    digest: str
    complete: bool
    pinned: bool


def observe(*, may_be_absent: bool = False) -> dict[str, Found]:
    """The images of the node by reference.

    :param may_be_absent: containerd need not be there yet; then there are none.
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
    """What `ctr images list` and `ctr images check` say: tables with a header and columns of any width.

    :param listed: REF TYPE DIGEST SIZE PLATFORMS LABELS.
    :param checked: REF TYPE DIGEST STATUS SIZE UNPACKED, the status being "complete (4/4)" for a whole image.
    """
    complete = {line.split()[0] for line in checked.splitlines()[1:] if " complete (" in line}
    rows = [line.split() for line in listed.splitlines()[1:]]
    return {
        row[0]: Found(row[2], row[0] in complete, f"{PINNED}=pinned" in row[-1].split(","))
        for row in rows
        if len(row) >= 3
    }


def missing(wanted: Sequence[Image], seen: dict[str, Found]) -> list[str]:
    """References of the wanted images that have to be delivered."""
    return [
        image.reference
        for image in wanted
        if (found := seen.get(image.reference)) is None or not found.complete or found.digest != image.digest
    ]


def make_plan(wanted: Sequence[Image], seen: dict[str, Found], *, timeout: float) -> Plan:
    """Import what is missing and pin what is wanted.

    Older images of the same repositories lose their pin: a running pod keeps its own, and the kubelet collects them
    when the disk fills.

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
            f"Leave {reference} to the kubelet's garbage collection",
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
    """containerd checks each blob; that the archive is the wanted image is checked afterwards."""
    if not os.path.isfile(image.archive):
        raise TrainyardError(f"The archive of {image.reference}, {image.archive or 'none'}, does not exist.")
    run([*CTR, "import", f"--label={PINNED}=pinned", image.archive], timeout=timeout)
    if image.reference in missing([image], observe()):
        raise TrainyardError(
            f"The archive {image.archive} is not the image {image.reference}.",
            remedy="Run the role bundle again: it notices a damaged image and makes it anew.",
        )


def _label(reference: str, value: str) -> None:
    run([*CTR, "label", reference, f"{PINNED}={value}"], timeout=ASK_TIMEOUT)
