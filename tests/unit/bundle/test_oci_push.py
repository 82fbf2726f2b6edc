"""Pushing layouts to a real registry over TLS, by the module's own code and by the module."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible.module_utils.trainyard.bundle import oci
from ansible.module_utils.trainyard.bundle.origin import Image
from ansible.module_utils.trainyard.bundle.vendor.images import Puller
from ansible.module_utils.trainyard.core.errors import TrainyardError

from library import oci_push
from tests.unit.bundle.vendors import flipped, sha256
from tests.unit.certificates import self_signed

pytestmark = pytest.mark.skipif(shutil.which("docker-registry") is None, reason="not installed: docker-registry")

NAME = "registry.k8s.io/pause:3.10.2"


def make_layout(folder: Path, *, media_type: bool = True) -> oci.Image:
    """An image of one layer in an OCI layout."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(content: bytes) -> dict[str, object]:
        (blobs / sha256(content)).write_bytes(content)
        return {"digest": f"sha256:{sha256(content)}", "size": len(content)}

    kind = "application/vnd.oci.image"
    manifest = {
        "schemaVersion": 2,
        "config": {"mediaType": f"{kind}.config.v1+json", **put(b'{"os": "linux", "rootfs": {"diff_ids": []}}')},
        "layers": [{"mediaType": f"{kind}.layer.v1.tar+gzip", **put(b"layer" * 1000)}],
        **({"mediaType": oci.MANIFEST_TYPE} if media_type else {}),
    }
    return oci.image(NAME, folder, str(put(json.dumps(manifest).encode())["digest"]))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def registry(tmp_path) -> Iterator[tuple[str, str]]:
    """URL and certificate of a running registry."""
    port, pair = free_port(), tmp_path / "pair.pem"
    pair.write_text("".join(self_signed()))
    config = {
        "version": "0.1",
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "storage")}},
        "http": {"addr": f"127.0.0.1:{port}", "tls": {"certificate": str(pair), "key": str(pair)}},
    }
    (tmp_path / "config.yml").write_text(json.dumps(config))
    argv = ["docker-registry", "serve", str(tmp_path / "config.yml")]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 20
        while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield f"https://127.0.0.1:{port}", str(pair)
        process.kill()


@pytest.mark.parametrize("media_type", [True, False])
def test_push_and_look(registry, tmp_path, media_type: bool) -> None:
    there = oci.Registry(*registry)
    image = make_layout(tmp_path / "oci", media_type=media_type)
    assert there.digest(image.repository, image.tag) is None
    there.push(image)
    assert there.digest(image.repository, image.tag) == image.digest
    there.push(image)


def test_what_was_pushed_can_be_pulled(registry, tmp_path, monkeypatch) -> None:
    image = make_layout(tmp_path / "oci")
    oci.Registry(*registry).push(image)
    monkeypatch.setenv("SSL_CERT_FILE", registry[1])
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    origin = Image(registry[0].removeprefix("https://"), image.repository, image.tag, image.digest)
    assert Puller().resolve(origin) == image.digest
    facts = Puller().fetch(origin, tmp_path / "out", tmp_path / "partial")
    assert facts["digest"] == image.digest


def test_a_damaged_layer_is_refused_by_the_registry(registry, tmp_path) -> None:
    image = make_layout(tmp_path / "oci")
    [layer] = [path for path in (tmp_path / "oci/blobs/sha256").iterdir() if path.read_bytes().startswith(b"layer")]
    layer.write_bytes(flipped(layer.read_bytes()))
    with pytest.raises(TrainyardError, match=r"answered 400 to PUT /v2/registry.k8s.io/pause/blobs.*DIGEST_INVALID"):
        oci.Registry(*registry).push(image)


def test_a_layout_without_its_manifest_is_named(registry, tmp_path) -> None:
    with pytest.raises(TrainyardError, match=rf"layout {tmp_path}/oci of registry.k8s.io/pause:3.10.2 lacks sha256:0"):
        oci.Registry(*registry).push(oci.image(NAME, tmp_path / "oci", "sha256:0"))


@pytest.mark.parametrize(
    ("url", "ca_file", "message"),
    [
        ("http://127.0.0.1:5000", None, "is not the https:// address of a registry"),
        ("https://127.0.0.1:9", None, "The registry https://127.0.0.1:9 does not answer: .*refused"),
        ("https://127.0.0.1:9", "/nonexistent/ca.crt", "authority /nonexistent/ca.crt cannot be read"),
    ],
)
def test_a_registry_that_is_none(url: str, ca_file: str | None, message: str) -> None:
    with pytest.raises(TrainyardError, match=message):
        oci.Registry(url, ca_file).digest("a/b", "c")


def test_a_registry_of_another_authority_is_not_believed(registry) -> None:
    with pytest.raises(TrainyardError, match="CERTIFICATE_VERIFY_FAILED"):
        oci.Registry(registry[0]).digest("a/b", "c")


def run_module(capsys, image: oci.Image, registry: tuple[str, str], check: bool) -> dict:
    """Run the module in this process and return its answer."""
    entry = {"reference": NAME, "layout": str(image.layout), "digest": image.digest}
    arguments = {"registry": registry[0], "ca_file": registry[1], "images": [entry], "_ansible_check_mode": check}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        oci_push.main()
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_the_module_pushes_what_differs(registry, tmp_path, capsys) -> None:
    image = make_layout(tmp_path / "oci")
    steps = [f"Push {NAME}"]
    assert run_module(capsys, image, registry, check=True)["steps"] == steps
    assert run_module(capsys, image, registry, check=True)["steps"] == steps, "check mode pushes nothing"
    assert run_module(capsys, image, registry, check=False)["steps"] == steps
    assert run_module(capsys, image, registry, check=True)["changed"] is False
    assert run_module(capsys, image, registry, check=False)["changed"] is False


def test_the_module_plans_without_a_registry_and_fails_without_one(tmp_path, capsys) -> None:
    image = make_layout(tmp_path / "oci")
    absent = ("https://127.0.0.1:9", "/nonexistent/ca.crt")
    assert run_module(capsys, image, absent, check=True)["steps"] == [f"Push {NAME}"]
    assert run_module(capsys, image, absent, check=False)["failed"] is True
