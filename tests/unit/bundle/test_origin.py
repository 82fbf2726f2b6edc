"""What a lock's `upstream` may say; an unpinned download cannot be said."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.bundle.origin import Apt, Download, Downloads, Image, parse
from trainyard.core.errors import TrainyardError

HASH = "a" * 64
KEY = "DE15B14486CD377B9E876E1A234654DA9A296436"
DEB = {"package": "kubelet"}
IMAGE = {"reference": "registry.k8s.io/pause:{version}"}
APT = {"apt": "https://example.org/deb", "key": "https://example.org/key", "signed_by": KEY}
URL = "https://example.org/v1.2/tool"


@pytest.mark.parametrize(
    ("recipe", "upstream", "expected"),
    [
        ({}, None, None),
        ({}, {}, None),
        (
            DEB,
            APT,
            Apt("https://example.org/deb/", "/", "", "kubelet", "v1.2", "https://example.org/key", KEY, ""),
        ),
        (
            DEB,
            {
                **APT,
                "suite": "trixie",
                "component": "stable",
                "version": "v1.2~deb13",
                "package": "tool",
                "key": "project:key.asc",
                "signed_by": "de15 b144 86cd 377b 9e87 6e1a 2346 54da 9a29 6436",
                "sha256": HASH,
            },
            Apt("https://example.org/deb/", "trixie", "stable", "tool", "v1.2~deb13", "project:key.asc", KEY, HASH),
        ),
        (
            IMAGE,
            {"image": f"registry.k8s.io/pause:v1.2@sha256:{HASH}"},
            Image("registry.k8s.io", "pause", "v1.2", f"sha256:{HASH}"),
        ),
        (IMAGE, {"image": "registry.k8s.io/pause:v1.2@unpinned"}, Image("registry.k8s.io", "pause", "v1.2", "")),
        (
            {},
            {"downloads": [{"url": f"{URL}#sha256={HASH}", "file": "tool"}]},
            Downloads((Download(URL, HASH, (("tool", ""),)),)),
        ),
        (
            {},
            {
                "version": "v9",
                "downloads": [{"url": "https://example.org/9.tgz#sha256=unpinned", "members": {"a": "b"}}],
            },
            Downloads((Download("https://example.org/9.tgz", "", (("a", "b"),)),)),
        ),
    ],
)
def test_origins(recipe: dict[str, Any], upstream: Any, expected: object) -> None:
    assert parse("tool", "v1.2", recipe, upstream) == expected


@pytest.mark.parametrize(
    ("recipe", "upstream", "message"),
    [
        (DEB, "https://example.org", "it needs one of apt, image, downloads"),
        (DEB, {"sha256": HASH}, "it needs one of apt, image, downloads"),
        (DEB, {**APT, "image": "x"}, "it needs one of apt, image, downloads"),
        (DEB, {**APT, "signed_by": None}, "it has no signed_by, so the package cannot be authenticated"),
        (DEB, {**APT, "key": ""}, "it has no key"),
        (DEB, {**APT, "signed_by": "9A296436"}, "signed_by 9A296436 is not the whole fingerprint"),
        (DEB, {**APT, "apt": "http://example.org/deb"}, "http://example.org/deb is not an https:// address"),
        (DEB, {**APT, "key": "http://example.org/key"}, "http://example.org/key is not an https:// address"),
        (DEB, {**APT, "version": "v1.1"}, "its version v1.1 does not begin with the entry's, v1.2"),
        (DEB, {**APT, "sha256": "abc"}, "abc is not a SHA-256"),
        (IMAGE, {"image": "registry.k8s.io/pause:v1.2"}, "is not HOST/REPOSITORY:TAG@sha256:DIGEST"),
        (IMAGE, {"image": "pause:v1.2@unpinned"}, "is not HOST/REPOSITORY:TAG@sha256:DIGEST"),
        (IMAGE, {"image": None}, "None is not HOST/REPOSITORY:TAG@sha256:DIGEST"),
        (IMAGE, {"image": "registry.k8s.io/pause:v1.2@sha256:12"}, "12 is not a SHA-256"),
        (IMAGE, {"image": "registry.k8s.io/pause:v1.2@latest"}, "latest is not a SHA-256"),
        (IMAGE, {"image": f"registry.k8s.io/pause:v1.1@sha256:{HASH}"}, "is not registry.k8s.io/pause:v1.2"),
        ({}, {"downloads": [{"url": URL, "file": "tool"}]}, f"has no hash; write {URL}#sha256=HASH"),
        ({}, {"downloads": [{"url": f"{URL}#sha256=", "file": "tool"}]}, " is not a SHA-256"),
        ({}, {"downloads": [{"url": f"https://example.org/v1/tool#sha256={HASH}", "file": "t"}]}, "does not contain"),
        ({}, {"downloads": [{"url": f"http://example.org/v1.2#sha256={HASH}", "file": "t"}]}, "is not an https://"),
        ({}, {"downloads": [{"url": f"{URL}#sha256={HASH}"}]}, "needs either file or members"),
    ],
)
def test_refusals(recipe: dict[str, Any], upstream: Any, message: str) -> None:
    with pytest.raises(TrainyardError) as failure:
        parse("tool", "v1.2", recipe, upstream)
    assert failure.value.message.startswith("The upstream of the lock's entry tool is refused: ")
    assert message in failure.value.message
    assert "0002-upstream-pins" in failure.value.remedy


def test_docker_hub_answers_under_another_name() -> None:
    assert Image("docker.io", "calico/node", "v1", "").endpoint == "https://registry-1.docker.io"
    assert Image("registry.k8s.io", "pause", "v1", "").probe == "https://registry.k8s.io/v2/"


@pytest.mark.parametrize(
    ("suite", "release"), [("/", "https://example.org/deb/"), ("trixie", "https://example.org/deb/dists/trixie/")]
)
def test_the_two_shapes_of_an_apt_repository(suite: str, release: str) -> None:
    origin = parse("tool", "v1.2", DEB, {**APT, "suite": suite})
    assert isinstance(origin, Apt)
    assert (origin.release, origin.probe) == (release, f"{release}Release")
