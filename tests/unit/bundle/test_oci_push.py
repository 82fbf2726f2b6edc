"""Pushing layouts to a real registry over TLS."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from library import oci_push
from tests.unit.bundle.vendors import flipped, sha256
from tests.unit.registries import PROGRAMS, running
from trainyard.bundle import registry as oci
from trainyard.bundle.origin import Image
from trainyard.bundle.vendor import upstream

pytestmark = PROGRAMS

NAME = "registry.k8s.io/pause:3.10.2"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


def make_layout(folder: Path, *, media_type: bool = True) -> oci.Image:
    """An image of one zstd layer, as the bundle makes them, in an OCI layout."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(content: bytes) -> dict[str, object]:
        (blobs / sha256(content)).write_bytes(content)
        return {"digest": f"sha256:{sha256(content)}", "size": len(content)}

    kind = "application/vnd.oci.image"
    config = b'{"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": ["sha256:%064d"]}}' % 0
    manifest = {
        "schemaVersion": 2,
        "config": {"mediaType": f"{kind}.config.v1+json", **put(config)},
        "layers": [{"mediaType": f"{kind}.layer.v1.tar+zstd", **put(b"layer" * 1000)}],
        **({"mediaType": MANIFEST_TYPE} if media_type else {}),
    }
    described = put(json.dumps(manifest).encode())
    index = {"schemaVersion": 2, "manifests": [{"mediaType": MANIFEST_TYPE, **described}]}
    (folder / "index.json").write_text(json.dumps(index))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return oci.Image(NAME, folder, str(described["digest"]))


@pytest.fixture
def registry(tmp_path) -> Iterator[tuple[str, str]]:
    with running(tmp_path) as started:
        yield started


@pytest.fixture
def private(tmp_path) -> Iterator[tuple[str, str]]:
    """A registry that lets in `someone` with the password `secret`."""
    # bcrypt of "secret", the only kind that the registry takes.
    (tmp_path / "users").write_text("someone:$2y$04$jsQblGoUt/3sgZLKvLS4e.DNuRg4RKeak61m4BvGcf8g2yUk1tixC\n")
    with running(tmp_path, auth={"htpasswd": {"realm": "tests", "path": str(tmp_path / "users")}}) as started:
        yield started


def push(capsys, image: oci.Image, url: str, *, check: bool = False, **access: str | bool) -> dict:
    """Run the module in this process and return its answer."""
    entry = {"reference": NAME, "layout": str(image.layout), "digest": image.digest}
    arguments = {"registry": url, "images": [entry], "_ansible_check_mode": check, **access}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        oci_push.main()
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize("media_type", [True, False])
def test_what_differs_is_pushed_once(registry, tmp_path, capsys, media_type: bool) -> None:
    image, (url, ca) = make_layout(tmp_path / "oci", media_type=media_type), registry
    steps = [f"Push {NAME}"]
    assert push(capsys, image, url, ca_file=ca, check=True)["steps"] == steps
    assert push(capsys, image, url, ca_file=ca, check=True)["steps"] == steps, "check mode pushes nothing"
    assert push(capsys, image, url, ca_file=ca)["steps"] == steps
    assert push(capsys, image, url, ca_file=ca, check=True)["changed"] is False
    assert push(capsys, image, url, ca_file=ca)["changed"] is False


def test_what_was_pushed_can_be_pulled(registry, tmp_path, capsys, monkeypatch) -> None:
    image, (url, ca) = make_layout(tmp_path / "oci"), registry
    push(capsys, image, url, ca_file=ca)
    monkeypatch.setenv("SSL_CERT_FILE", ca)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    origin = Image(url.removeprefix("https://"), "registry.k8s.io/pause", "3.10.2", image.digest)
    assert upstream.resolve(origin) == image.digest
    assert upstream.fetch_image(origin, tmp_path / "out", tmp_path / "partial")["digest"] == image.digest


def test_a_damaged_layer_is_refused(registry, tmp_path, capsys) -> None:
    image, (url, ca) = make_layout(tmp_path / "oci"), registry
    [layer] = [path for path in (tmp_path / "oci/blobs/sha256").iterdir() if path.read_bytes().startswith(b"layer")]
    layer.write_bytes(flipped(layer.read_bytes()))
    answer = push(capsys, image, url, ca_file=ca)
    assert answer["failed"] and "digest" in answer["msg"].lower()


def test_a_layout_without_its_manifest_is_named(registry, tmp_path, capsys) -> None:
    image, (url, ca) = make_layout(tmp_path / "oci"), registry
    lacking = oci.Image(NAME, image.layout, "sha256:0")
    assert f"layout {tmp_path}/oci of {NAME} lacks sha256:0" in push(capsys, lacking, url, ca_file=ca)["msg"]


def test_an_image_without_its_digest_is_named(capsys) -> None:
    upstream = [{"reference": NAME, "layout": "/nonexistent"}]
    arguments = {"registry": "https://127.0.0.1:9", "images": upstream}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        oci_push.main()
    assert "missing required arguments: digest found in images" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "ca_file", "message"),
    [
        ("http://127.0.0.1:5000", "", "is not the https:// address of a registry"),
        ("https://127.0.0.1:9", "", "The registry https://127.0.0.1:9 does not answer: .*refused"),
        ("https://127.0.0.1:9", "/nonexistent/ca.crt", "/nonexistent/ca.crt, .*does not exist"),
    ],
)
def test_a_registry_that_is_none(tmp_path, capsys, url: str, ca_file: str, message: str) -> None:
    image = make_layout(tmp_path / "oci")
    assert re.search(message, push(capsys, image, url, ca_file=ca_file)["msg"])
    planned = push(capsys, image, url, ca_file=ca_file, check=True)
    assert planned.get("steps") == ([f"Push {NAME}"] if url.startswith("https") else None)


@pytest.mark.parametrize("check", [True, False])
def test_a_registry_of_another_authority_is_not_believed(registry, tmp_path, capsys, check: bool) -> None:
    image = make_layout(tmp_path / "oci")
    answer = push(capsys, image, registry[0], check=check)
    assert answer["failed"] and "certificate of the registry" in answer["msg"] and "x509" in answer["msg"]


@pytest.mark.parametrize("check", [True, False])
def test_a_login_that_is_refused(private, tmp_path, capsys, check: bool) -> None:
    image, (url, ca) = make_layout(tmp_path / "oci"), private
    (tmp_path / "auth.json").write_text(logins(url, "someone", "wrong-secret"))
    for access in (
        {},
        {"username": "someone", "password": "wrong-secret"},
        {"auth_file": str(tmp_path / "auth.json")},
        {"auth_file": str(tmp_path / "auth.json"), "probe": True},
    ):
        answer = push(capsys, image, url, ca_file=ca, check=check, **access)
        assert answer["failed"] and "refuses the login" in answer["msg"]
        assert "wrong-secret" not in answer["msg"]


def test_a_login_that_is_taken(private, tmp_path, capsys) -> None:
    image, (url, ca) = make_layout(tmp_path / "oci"), private
    (tmp_path / "auth.json").write_text(logins(url, "someone", "secret"))
    probed = push(capsys, image, url, ca_file=ca, username="someone", password="secret", probe=True)
    assert probed["changed"] is False and not probed.get("failed")
    assert push(capsys, image, url, ca_file=ca, username="someone", password="secret")["changed"] is True
    assert push(capsys, image, url, ca_file=ca, auth_file=str(tmp_path / "auth.json"))["changed"] is False


def logins(url: str, username: str, password: str) -> str:
    login = base64.b64encode(f"{username}:{password}".encode()).decode()
    return json.dumps({"auths": {url.removeprefix("https://"): {"auth": login}}})
