"""Code of trainings on the mirror: nodes and the controller pull it, and no way leads around that."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.unit.mirror.front import NGINX, ROLE, SECRET, Front, mirror
from tests.unit.registries import PROGRAMS
from trainyard.bundle import registry as oci
from trainyard.oci import code_folder, layout

pytestmark = [PROGRAMS, pytest.mark.skipif(NGINX is None, reason="not installed: nginx")]
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Site(NamedTuple):
    """A mirror with an image of code and another one."""

    front: Front
    manifest: str
    blobs: list[str]
    other: str


def pushed(front: Front, place: Path, reference: str, text: str) -> str:
    """Push an image of one file and return its digest."""
    (place / "code").mkdir(parents=True)
    (place / "code" / "main.py").write_text(text)
    image = layout.pack(place / "code", code_folder.read(place / "code"))
    image.write(place / "oci")
    files = {name: str(front.folder / f"push.{end}") for name, end in (("client_cert", "crt"), ("client_key", "key"))}
    access = oci.Access(ca_file=str(front.etc / "server.crt"), **files)
    with oci.registry(f"https://127.0.0.1:{front.port}", access) as there:
        there.open()
        there.push(oci.Image(reference, place / "oci", image.digest))
        assert there.digest(reference) == image.digest
    return image.digest


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("mirror")
    with mirror(place) as front:
        code = pushed(front, place / "a", "trainyard/code:1", "secret = 1\n")
        other = pushed(front, place / "b", "trainyard/other:1", "print(1)\n")
        front.accept(SECRET)
        front.require()
        front.start()
        manifest = front.ask(f"/v2/trainyard/code/manifests/{code}", secret=SECRET, Accept=MANIFEST)
        described = json.loads(manifest.body)
        yield Site(front, code, [each["digest"] for each in (described["config"], *described["layers"])], other)


def test_only_a_node_pulls_code(site: Site) -> None:
    paths = [f"manifests/{site.manifest}", "manifests/1", *(f"blobs/{blob}" for blob in site.blobs)]
    for path in (f"/v2/trainyard/code/{path}" for path in paths):
        for method in ("GET", "HEAD"):
            refused = site.front.ask(path, method, Accept=MANIFEST)
            assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="code of trainings"')
            assert site.front.ask(path, method, Accept=MANIFEST, secret="5e" * 31 + "5f").status == 401
            sent = base64.b64encode(f"node:{SECRET}".encode()).decode()
            for other in (f"Bearer {sent}", f"Basic {sent.swapcase()}", f"Basic {sent}=", f"x Basic {sent}"):
                assert site.front.ask(path, method, Accept=MANIFEST, Authorization=other).status == 401
            assert site.front.ask(path, method, Accept=MANIFEST, secret=SECRET).status == 200
            assert site.front.ask(path, method, Accept=MANIFEST, pushes=True).status == 200


def test_other_images_are_for_all(site: Site) -> None:
    for method in ("GET", "HEAD"):
        answer = site.front.ask(f"/v2/trainyard/other/manifests/{site.other}", method, Accept=MANIFEST)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (200, None)
    assert site.front.ask("/v2/").status == 200
    assert site.front.ask("/v2/trainyard/other/tags/list").status == 200
    assert site.front.ask("/v2/trainyard/codec/manifests/1").status == 404, "a name that begins alike"
    # A wrong credential changes nothing there.
    assert site.front.ask("/v2/trainyard/other/tags/list", secret="wrong").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "//v2//trainyard//code/{}",
        "/v2/trainyard/code//{}",
        "/v2/Trainyard/Code/{}",
        "/V2/trainyard/code/{}",
        "/v2/%74rainyard/%63ode/{}",
        "/v2/trainyard%2fcode%2f{}",
        "/v2/trainyard/./code/{}",
        "/v2/trainyard/other/../code/{}",
        "/v2/trainyard/other/%2e%2e/code/{}",
        "/v2/trainyard/other/..%2fcode/{}",
        "/v2/trainyard/other/%252e%252e/code/{}",
        "/v2/x/../trainyard/code/{}",
        "/x/../v2/trainyard/code/{}",
        "/v2/trainyard/code/{}/",
        "/v2/trainyard/code/{}?n=1&ns=docker.io",
        "/v2/trainyard/other/../code/{}#/../../other",
        "/v2/#/../trainyard/code/{}",
        "/v2/trainyard/code;x/{}",
        "/v2/trainyard/code%00/{}",
        "/v2/trainyard/code%20/{}",
        "/v2/trainyard/other/{}",
        "/v2/trainyard/{}",
        "/v2/trainyard/other/blobs/..%2f..%2f..%2fcode%2f{}",
        "https://mirror.lan/v2/trainyard/code/{}",
    ],
)
def test_no_form_of_the_path_leads_around_it(site: Site, path: str) -> None:
    """Another repository has none of its blobs, even by their digests."""
    for wanted in (f"manifests/{site.manifest}", *(f"blobs/{blob}" for blob in site.blobs)):
        for method in ("GET", "HEAD"):
            answer = site.front.ask(path.format(wanted), method, Accept=MANIFEST)
            assert answer.headers["Docker-Content-Digest"] is None, answer
            # nginx leaves out the fragment: what is left is the question whether there is a registry.
            assert answer.status in {400, 401, 404} or ("/#/" in path and answer.body in {b"", b"{}"}), answer


def test_a_blob_is_not_mounted_into_another_repository(site: Site) -> None:
    mount = f"/v2/trainyard/other/blobs/uploads/?mount={site.blobs[-1]}&from=trainyard/code"
    for sent in ({}, {"secret": SECRET}):
        assert site.front.ask(mount, "POST", **sent).status == 403
    assert site.front.ask(f"/v2/trainyard/other/blobs/{site.blobs[-1]}").status == 404


@pytest.mark.parametrize("secret", ["", SECRET])
def test_a_node_writes_and_lists_nothing(site: Site, secret: str) -> None:
    for path in ("/v2/_catalog", "/v2/_catalog?n=1000", "/v2/trainyard/code/tags/list", "/v2//%5fcatalog"):
        assert site.front.ask(path, secret=secret).status == 403
    for method in ("PUT", "POST", "PATCH", "DELETE"):
        assert site.front.ask(f"/v2/trainyard/code/manifests/{site.manifest}", method, secret=secret).status == 403
    assert site.front.ask("/v2/_catalog", pushes=True).status == 200


def test_an_existing_mirror_requires_it_when_it_is_asked_to(tmp_path: Path) -> None:
    """The role writes the credential first, then nodes get it, then it is required; a new one is accepted beside it."""
    with mirror(tmp_path) as front:
        path = f"/v2/trainyard/code/manifests/{pushed(front, tmp_path / 'a', 'trainyard/code:1', 'x = 1')}"
        assert front.ask(path, Accept=MANIFEST).status == 200, "as before"
        front.accept(SECRET)
        front.start()
        for sent in ("", SECRET):
            assert front.ask(path, Accept=MANIFEST, secret=sent).status == 200
        front.require()
        front.accept("a1" * 32, "b")
        front.start()
        for sent, status in (("", 401), (SECRET, 200), ("a1" * 32, 200)):
            assert front.ask(path, Accept=MANIFEST, secret=sent).status == status
        (front.etc / "nodes" / "a.conf").unlink()
        front.start()
        assert front.ask(path, Accept=MANIFEST, secret=SECRET).status == 401
        # Required, and none accepted: only the controller is left.
        shutil.rmtree(front.etc / "nodes")
        front.start()
        assert front.ask(path, Accept=MANIFEST, secret="a1" * 32).status == 401
        assert front.ask(path, Accept=MANIFEST, pushes=True).status == 200


@pytest.mark.parametrize(
    ("registry", "repositories"),
    [
        ("", ["trainyard/code"]),
        ("registry.example.org/team", ["trainyard/code"]),
        ("mirror.lan:5000/trainyard", ["trainyard/code"]),
        ("mirror.lan:5000/team/a", ["trainyard/code", "team/a/code"]),
        ("mirror.lan:5000", ["trainyard/code", "code"]),
        ("mirror.lan:50001/team", ["trainyard/code"]),
    ],
)
def test_code_is_where_the_site_pushes_it(tmp_path: Path, registry: str, repositories: list[str]) -> None:
    values = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
    site = {"mirror_name": "mirror.lan", "mirror_registry_port": 5000, "workloads_registry": registry}
    made = Front(5000, tmp_path, {**values, **site}).rendered("code.conf.j2")
    assert made.splitlines()[1:] == [f'"~* /v2/{each}(/|$)" 1;' for each in repositories]
