"""containerd_images: what ctr prints, what is missing, what is pinned."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.host import images
from trainyard.host.images import Found, Image, make_plan, missing, parse

NEW = f"sha256:{'a' * 64}"
OLD = f"sha256:{'b' * 64}"
REPOSITORY = "localhost/trainyard/tensorflow"
WANTED = Image(f"{REPOSITORY}@{NEW}", "/tmp/archive.tar")

LISTED = f"""REF TYPE DIGEST SIZE PLATFORMS LABELS
{REPOSITORY}@{NEW} application/vnd.oci.image.manifest.v1+json {NEW} 284.4 MiB linux/amd64 \
io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned
{REPOSITORY}@{OLD} application/vnd.oci.image.manifest.v1+json {OLD} 11.2 MiB linux/amd64 io.cri-containerd.image=managed
registry.k8s.io/pause:3.10.2 application/vnd.oci.image.manifest.v1+json {OLD} 300.0 KiB linux/amd64 -
"""
CHECKED = f"""REF TYPE DIGEST STATUS SIZE UNPACKED
{REPOSITORY}@{NEW} application/vnd.oci.image.manifest.v1+json {NEW} complete (4/4) 284.4 MiB/284.4 MiB true
{REPOSITORY}@{OLD} application/vnd.oci.image.manifest.v1+json {OLD} incomplete (3/4) 10.0 MiB/11.2 MiB false
"""


def test_what_containerd_prints() -> None:
    """Recorded from containerd 2.3.4, the columns' padding aside."""
    assert parse(LISTED, CHECKED) == {
        f"{REPOSITORY}@{NEW}": Found(NEW, complete=True, pinned=True),
        f"{REPOSITORY}@{OLD}": Found(OLD, complete=False, pinned=False),
        "registry.k8s.io/pause:3.10.2": Found(OLD, complete=False, pinned=False),
    }


@pytest.mark.parametrize(
    ("seen", "steps"),
    [
        ({}, [f"Import {WANTED.reference}"]),
        ({WANTED.reference: Found(NEW, complete=False, pinned=True)}, [f"Import {WANTED.reference}"]),
        ({WANTED.reference: Found(OLD, complete=True, pinned=True)}, [f"Import {WANTED.reference}"]),
        ({WANTED.reference: Found(NEW, complete=True, pinned=False)}, [f"Pin {WANTED.reference}"]),
        ({WANTED.reference: Found(NEW, complete=True, pinned=True)}, []),
        (
            {
                WANTED.reference: Found(NEW, complete=True, pinned=True),
                f"{REPOSITORY}@{OLD}": Found(OLD, complete=True, pinned=True),
                f"localhost/somebody/else@{OLD}": Found(OLD, complete=True, pinned=True),
            },
            [f"Unpin {REPOSITORY}@{OLD} for the kubelet's garbage collection"],
        ),
    ],
)
def test_plan(seen: dict[str, Found], steps: list[str]) -> None:
    assert [step.what for step in make_plan([WANTED], seen, timeout=1).steps] == steps


def test_an_archive_of_another_image_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    archive = tmp_path / "archive.tar"
    archive.touch()
    monkeypatch.setattr(images, "run", lambda *_, **__: None)
    monkeypatch.setattr(images, "observe", lambda: {WANTED.reference: Found(OLD, complete=True, pinned=True)})
    with pytest.raises(TrainyardError, match="is not the image"):
        make_plan([Image(WANTED.reference, str(archive))], {}, timeout=1).execute()


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match="does not exist"):
        make_plan([Image(WANTED.reference, str(tmp_path / "none"))], {}, timeout=1).execute()


def test_missing_names_what_has_to_be_sent() -> None:
    assert missing([WANTED], {}) == [WANTED.reference]
    assert missing([WANTED], {WANTED.reference: Found(NEW, complete=True, pinned=False)}) == []
