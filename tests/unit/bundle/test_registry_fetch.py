"""An image from a vendor's registry into an OCI layout, and every altered bit on the way."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.unit.bundle.vendors import Vendor, flipped, sha256
from trainyard.bundle.origin import Image
from trainyard.bundle.registry import NoRegistryError
from trainyard.bundle.vendor import upstream
from trainyard.core.errors import TrainyardError

pytestmark = pytest.mark.skipif(not shutil.which("skopeo"), reason="not installed: skopeo")

BLOBS = {"config": b'{"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers"}}', "layer": b"a layer" * 400}
INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
BLOB_TYPES = (
    ("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip"),
    ("application/vnd.docker.container.image.v1+json", "application/vnd.docker.image.rootfs.diff.tar.gzip"),
)


def put(vendor: Vendor, content: bytes, kind: str) -> str:
    digest = f"sha256:{sha256(content)}"
    vendor.files[f"/v2/team/tool/{kind}/{digest}"] = content
    return digest


def publish(vendor: Vendor, family: int = 0) -> dict[str, str]:
    """Put an image for two platforms on the server (family 0: OCI's types, 1: Docker's). Digests by name."""
    digests = {name: put(vendor, content, "blobs") for name, content in BLOBS.items()}
    described = {
        name: {"mediaType": media_type, "digest": digests[name], "size": len(content)}
        for (name, content), media_type in zip(BLOBS.items(), BLOB_TYPES[family], strict=True)
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPES[family],
        "config": described["config"],
        "layers": [described["layer"]],
    }
    digests["manifest"] = put(vendor, json.dumps(manifest).encode(), "manifests")
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX_TYPES[family],
        "manifests": [
            {
                "mediaType": MANIFEST_TYPES[family],
                "digest": digest,
                "size": 1000,
                "platform": {"os": "linux", "architecture": architecture},
            }
            for architecture, digest in (("arm64", f"sha256:{'0' * 64}"), ("amd64", digests["manifest"]))
        ],
    }
    digests["index"] = put(vendor, json.dumps(index).encode(), "manifests")
    vendor.files["/v2/team/tool/manifests/v1"] = json.dumps(index).encode()
    return digests


def origin(vendor: Vendor, digest: str) -> Image:
    return Image(vendor.address, "team/tool", "v1", digest)


@pytest.mark.parametrize("family", [0, 1], ids=["oci", "docker"])
@pytest.mark.parametrize("pinned", ["index", "manifest"])
@pytest.mark.parametrize("token", ["", "secret"])
def test_an_image_arrives(vendor, tmp_path, family: int, pinned: str, token: str) -> None:
    digests = publish(vendor, family)
    vendor.token = token
    facts = upstream.fetch_image(origin(vendor, digests[pinned]), tmp_path / "out", tmp_path / "partial")
    assert facts == {"reference": f"{vendor.address}/team/tool:v1", "digest": digests["manifest"], "layout": "oci"}
    layout = tmp_path / "out" / "oci"
    [entry] = json.loads((layout / "index.json").read_text())["manifests"]
    assert (entry["digest"], entry["mediaType"]) == (digests["manifest"], MANIFEST_TYPES[family])
    for name in ("config", "layer", "manifest"):
        assert sha256((layout / "blobs" / digests[name].replace(":", "/")).read_bytes()) == digests[name][7:]
    assert [path.split("?")[0] for _, path, _, _ in vendor.seen].count("/token") == bool(token)


@pytest.mark.parametrize("what", ["index", "manifest", "config", "layer"])
def test_a_flipped_bit_is_refused(vendor, tmp_path, what: str) -> None:
    digests = publish(vendor)
    [place] = [path for path in vendor.files if path.endswith(digests[what])]
    vendor.files[place] = flipped(vendor.files[place])
    with pytest.raises(TrainyardError, match=f"not match.* {digests[what]}|{digests[what]}.* not match") as failure:
        upstream.fetch_image(origin(vendor, digests["index"]), tmp_path / "out", tmp_path / "partial")
    assert vendor.url in str(failure.value) and f"{vendor.address}/team/tool:v1" in str(failure.value)
    assert failure.value.remedy.startswith("Do not use it")
    assert not (tmp_path / "out" / "oci" / "index.json").exists()


def test_the_token_does_not_follow_a_redirection(vendor, tmp_path) -> None:
    digests = publish(vendor)
    vendor.token = "secret"
    blob = f"/v2/team/tool/blobs/{digests['layer']}"
    vendor.files["/store/layer"] = vendor.files.pop(blob)
    vendor.redirects[blob] = f"https://localhost:{vendor.address.rpartition(':')[2]}/store/layer"
    upstream.fetch_image(origin(vendor, digests["index"]), tmp_path / "out", tmp_path / "partial")
    assert [authorization for _, path, authorization, _ in vendor.seen if path == "/store/layer"] == [""]


def test_the_digest_of_a_tag_is_that_of_its_bytes(vendor) -> None:
    digests = publish(vendor)
    assert upstream.resolve(origin(vendor, "")) == digests["index"]


@pytest.mark.parametrize(
    "change",
    [
        {"mediaType": INDEX_TYPES[0], "manifests": [], "config": None, "layers": None},
        {"mediaType": "application/vnd.example", "config": {}},
        {"config": {"digest": "sha256:../../etc", "size": 1}},
        {"config": {"digest": "md5:0", "size": 1}},
        {"layers": [{"digest": f"sha512:{'0' * 128}", "size": 1}]},
    ],
)
def test_what_is_no_image_is_refused(vendor, tmp_path, change: dict) -> None:
    digests = publish(vendor)
    manifest = {**json.loads(vendor.files[f"/v2/team/tool/manifests/{digests['manifest']}"]), **change}
    kept = {name: value for name, value in manifest.items() if value is not None}
    digest = put(vendor, json.dumps(kept).encode(), "manifests")
    for blob in ("sha256:../../etc", "md5:0", f"sha512:{'0' * 128}"):
        vendor.files[f"/v2/team/tool/blobs/{blob}"] = b"x"
    with pytest.raises(TrainyardError, match=r"v1 .*(cannot be fetched|only sha256 is accepted)"):
        upstream.fetch_image(origin(vendor, digest), tmp_path / "out", tmp_path / "partial")
    assert not (tmp_path / "out" / "oci" / "index.json").exists()


def test_an_image_that_is_not_there(vendor, tmp_path) -> None:
    with pytest.raises(TrainyardError, match=r"team/tool@sha256:1+\) cannot be fetched: .*404") as failure:
        upstream.fetch_image(origin(vendor, f"sha256:{'1' * 64}"), tmp_path / "out", tmp_path / "partial")
    assert "set bundle_artifact_source to source" in failure.value.remedy


def test_a_pull_that_was_killed_is_begun_again(vendor, tmp_path) -> None:
    digests = publish(vendor)
    (tmp_path / "partial" / "image").mkdir(parents=True)
    (tmp_path / "partial" / "image" / "half").write_text("of a layer")
    upstream.fetch_image(origin(vendor, digests["index"]), tmp_path / "out", tmp_path / "partial")
    assert len(list((tmp_path / "out/oci/blobs/sha256").iterdir())) == 3


def test_a_registry_that_does_not_answer() -> None:
    with pytest.raises(NoRegistryError, match="does not answer"):
        upstream.resolve(Image("127.0.0.1:9", "team/tool", "v1", ""))


def test_a_machine_without_skopeo(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(TrainyardError, match="skopeo is not installed"):
        upstream.resolve(Image("127.0.0.1:9", "team/tool", "v1", ""))
