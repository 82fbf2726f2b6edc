"""An image from a vendor's registry into an OCI layout, and every altered bit on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from ansible.module_utils.trainyard.bundle.oci import INDEX_TYPES, MANIFEST_TYPES
from ansible.module_utils.trainyard.bundle.origin import Image
from ansible.module_utils.trainyard.bundle.vendor.images import Puller
from ansible.module_utils.trainyard.core.errors import TrainyardError

from tests.unit.bundle.vendors import Vendor, flipped, sha256, vendor_server

BLOBS = {"config": b'{"os": "linux"}' * 3, "layer": b"a layer" * 400}


@pytest.fixture
def vendor(tmp_path, monkeypatch) -> Iterator[Vendor]:
    with vendor_server(tmp_path, monkeypatch) as running:
        yield running


def put(vendor: Vendor, content: bytes, kind: str) -> str:
    digest = f"sha256:{sha256(content)}"
    vendor.files[f"/v2/team/tool/{kind}/{digest}"] = content
    return digest


def publish(vendor: Vendor, family: int = 0) -> dict[str, str]:
    """Put an image for two platforms on the server (family 0: OCI's types, 1: Docker's). Digests by name."""
    digests = {name: put(vendor, content, "blobs") for name, content in BLOBS.items()}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPES[family],
        "config": {"digest": digests["config"], "size": len(BLOBS["config"])},
        "layers": [{"digest": digests["layer"], "size": len(BLOBS["layer"])}],
    }
    digests["manifest"] = put(vendor, json.dumps(manifest).encode(), "manifests")
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX_TYPES[family],
        "manifests": [
            {"digest": f"sha256:{'0' * 64}", "platform": {"os": "linux", "architecture": "arm64"}},
            {"digest": digests["manifest"], "platform": {"os": "linux", "architecture": "amd64"}},
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
    facts = Puller().fetch(origin(vendor, digests[pinned]), tmp_path / "out", tmp_path / "partial")
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
    with pytest.raises(TrainyardError, match=f"expected was (sha256:)?{digests[what][7:]}") as failure:
        Puller().fetch(origin(vendor, digests["index"]), tmp_path / "out", tmp_path / "partial")
    assert vendor.url in str(failure.value)
    assert not (tmp_path / "out" / "oci" / "index.json").exists()


def test_the_token_does_not_follow_a_redirection(vendor, tmp_path) -> None:
    digests = publish(vendor)
    vendor.token = "secret"
    blob = f"/v2/team/tool/blobs/{digests['layer']}"
    vendor.files["/store/layer"] = vendor.files.pop(blob)
    vendor.redirects[blob] = f"{vendor.url}/store/layer"
    Puller().fetch(origin(vendor, digests["index"]), tmp_path / "out", tmp_path / "partial")
    assert [authorization for _, path, authorization, _ in vendor.seen if path == "/store/layer"] == [""]


def test_a_token_that_has_run_out_is_replaced(vendor, tmp_path) -> None:
    digests = publish(vendor)
    vendor.token = "first"
    puller = Puller()
    puller.fetch(origin(vendor, digests["index"]), tmp_path / "one", tmp_path / "partial")
    puller._tokens = dict.fromkeys(puller._tokens, "Bearer old")
    puller._blob(origin(vendor, ""), digests["layer"], tmp_path / "two" / "oci", tmp_path / "partial")
    assert (tmp_path / "two" / "oci" / "blobs" / digests["layer"].replace(":", "/")).exists()


def test_the_digest_of_a_tag_is_that_of_its_bytes(vendor) -> None:
    digests = publish(vendor)
    assert Puller().resolve(origin(vendor, "")) == digests["index"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"manifests": []}, "has no image for linux/amd64"),
        ({"mediaType": "application/vnd.example", "config": {}}, "which is not an image"),
        ({"config": {"digest": "sha256:../../etc"}, "layers": []}, "only sha256 is taken"),
        ({"config": {"digest": "md5:0"}, "layers": []}, "only sha256 is taken"),
    ],
)
def test_what_is_no_image_is_refused(vendor, tmp_path, document: dict, message: str) -> None:
    digest = put(vendor, json.dumps(document).encode(), "manifests")
    with pytest.raises(TrainyardError, match=message):
        Puller().fetch(origin(vendor, digest), tmp_path / "out", tmp_path / "partial")


def test_an_image_that_is_not_there(vendor, tmp_path) -> None:
    with pytest.raises(TrainyardError, match=r"/v2/team/tool/manifests/sha256:1+ cannot be fetched: .*404"):
        Puller().fetch(origin(vendor, f"sha256:{'1' * 64}"), tmp_path / "out", tmp_path / "partial")
