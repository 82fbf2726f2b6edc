"""The module as a whole: a site made from source, fetched from a vendor, repaired, swept and pinned."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from library import bundle
from tests.unit.bundle.vendors import Vendor, sha256, vendor_server

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="not installed: gcc")

LOCK = """schema: 1
artefacts:
  pause:
    kind: c_program
    version: "1.0"
    source: project:pause.c
    program: pause
    upstream:
      downloads:
        - {{url: "{url}/1.0/pause.gz#sha256={pin}", file: pause}}
"""


@pytest.fixture
def vendor(tmp_path, monkeypatch) -> Iterator[Vendor]:
    with vendor_server(tmp_path, monkeypatch) as running:
        running.files["/1.0/pause.gz"] = gzip.compress(b"theirs", mtime=0)
        yield running


class Site:
    def __init__(self, folder: Path, vendor: Vendor, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.vendor, self.capsys = folder, vendor, capsys
        (folder / "project").mkdir()
        (folder / "project/pause.c").write_text("int main(void) { return 0; }\n")
        self.pin("unpinned")

    def pin(self, pin: str) -> None:
        (self.folder / "project/lock.yml").write_text(LOCK.format(url=self.vendor.url, pin=pin))

    def run(self, check: bool = False, **options: Any) -> dict[str, Any]:
        arguments = {
            "lock": str(self.folder / "project/lock.yml"),
            "project": str(self.folder / "project"),
            "cache_dir": str(self.folder / "cache"),
            "_ansible_check_mode": check,
            **options,
        }
        with patch_module_args(arguments), pytest.raises(SystemExit):
            bundle.main()
        return json.loads(self.capsys.readouterr().out.splitlines()[-1])


@pytest.fixture
def site(tmp_path, vendor, capsys, monkeypatch) -> Site:
    monkeypatch.setattr(bundle.build_machine, "DISK_GIB", 0)
    return Site(tmp_path, vendor, capsys)


def test_check_run_repeat_damage_repair(site) -> None:
    planned = site.run(check=True)
    assert (planned["changed"], planned["missing"]) == (True, ["pause"])
    assert not (site.folder / "cache").exists(), "check mode writes nothing"
    made = site.run()
    assert made["steps"] == planned["steps"] == ["Make 1 artefacts: pause"]
    assert site.run()["changed"] is site.run(check=True)["changed"] is False
    Path(made["artefacts"]["pause"]["path"], "pause").write_text("damaged")
    assert site.run(check=True)["missing"] == ["pause"]
    assert site.run()["changed"] is True
    assert site.run()["changed"] is False


def test_an_unpinned_origin_is_not_downloaded(site) -> None:
    assert "no hash for the upstream of pause" in site.run(source="upstream")["msg"]
    assert site.run(source="auto")["artefacts"]["pause"]["origin"] == "source"
    assert site.vendor.seen == []


def test_pinned_and_fetched(site) -> None:
    assert site.run(pin=True, check=True)["changed"] is True
    assert "unpinned" in (site.folder / "project/lock.yml").read_text()
    assert site.run(pin=True)["changed"] is True
    assert site.run(pin=True)["changed"] is False
    assert site.run(source="auto", check=True)["missing"] == ["pause"]
    found = site.run(source="auto")["artefacts"]["pause"]
    assert found["origin"] == "upstream"
    assert gzip.decompress(Path(found["path"], "pause").read_bytes()) == b"theirs"
    site.vendor.files.clear()
    assert site.run(source="auto")["changed"] is site.run(source="upstream")["changed"] is False
    assert site.run(source="source")["artefacts"]["pause"]["origin"] == "source"


def test_a_pin_that_the_vendor_no_longer_serves_is_named(site) -> None:
    site.pin(sha256(b"what was pinned"))
    before = (site.folder / "project/lock.yml").read_text()
    differs = site.run(pin=True, check=True)
    served = sha256(site.vendor.files["/1.0/pause.gz"])
    assert f"pause.gz#sha256= is {served} now, the lock has {sha256(b'what was pinned')}" in differs["msg"]
    assert "find out why before you put a new hash" in differs["msg"]
    assert site.run(pin=True)["changed"] is False, "a pin that is there is not replaced"
    site.vendor.files.clear()
    assert "pause: " in (gone := site.run(pin=True, check=True)["msg"]) and "answered 404" in gone
    assert (site.folder / "project/lock.yml").read_text() == before


def test_all_none_or_some(site) -> None:
    assert site.run(artefacts=[], check=True)["missing"] == []
    assert site.run(artefacts=["pause"], check=True)["missing"] == site.run(check=True)["missing"] == ["pause"]


def test_another_hash_fails_and_does_not_fall_back(site) -> None:
    site.pin(sha256(b"what was pinned"))
    answer = site.run(source="auto")
    assert "The artefact pause cannot be made: " in answer["msg"]
    for part in (f"{site.vendor.url}/1.0/pause.gz", sha256(b"what was pinned"), answer["found"]):
        assert part in answer["msg"]
    assert answer["remedy"].startswith("Do not use it")
    assert list((site.folder / "cache/artefacts").iterdir()) == []


def test_a_file_that_its_vendor_has_removed_is_named_with_what_to_do(site) -> None:
    site.pin(sha256(b"what was pinned"))
    site.vendor.files.clear()
    answer = site.run(source="upstream")
    assert f"The artefact pause cannot be made: {site.vendor.url}/1.0/pause.gz cannot be fetched" in answer["msg"]
    assert "answered 404" in answer["msg"]
    assert answer["remedy"].startswith("The vendor no longer serves it: write a version that it serves, and its hash")
    assert list((site.folder / "cache/artefacts").iterdir()) == []


def delivery(site: Site, **options: Any) -> dict[str, Any]:
    """The module on a controller that makes nothing from recipes itself."""
    return site.run(
        cache_dir=str(site.folder / "controller"), delivered=str(site.folder / "archives"), source="source", **options
    )


def test_made_on_a_builder_and_taken_by_the_controller(site) -> None:
    (site.folder / "archives").mkdir()
    asked = delivery(site, check=True)
    assert (asked["recipes"], asked["inputs"]) == (["pause"], ["pause.c", bundle.build_machine.GO_TOOLCHAIN])
    made = site.run(source="source", artefacts=asked["recipes"], packed=str(site.folder / "archives"))
    assert made["steps"] == ["Make 1 artefacts: pause", "Pack pause"]
    taken = delivery(site)
    assert taken["steps"] == ["Make 1 artefacts: pause"]
    paths = [Path(each["artefacts"]["pause"]["path"]) for each in (made, taken)]
    assert paths[0].parent != paths[1].parent and paths[0].name == paths[1].name
    assert (paths[0] / "pause").read_bytes() == (paths[1] / "pause").read_bytes()
    assert (paths[1] / "artefact.json").read_bytes() == (paths[0] / "artefact.json").read_bytes()
    (site.folder / "archives/pause.tar").unlink()
    repeated = delivery(site)
    assert (repeated["changed"], repeated["recipes"]) == (False, [])


def test_a_controller_with_a_builder_makes_nothing_from_a_recipe(site) -> None:
    (site.folder / "archives").mkdir()
    answer = delivery(site)
    assert "The artefact pause cannot be made: " in answer["msg"] and "No such file" in answer["msg"]
    assert list((site.folder / "controller/artefacts").iterdir()) == []


def test_a_controller_with_a_builder_fetches_what_vendors_publish(site) -> None:
    assert site.run(pin=True)["changed"] is True
    fetched = site.run(source="auto", delivered=str(site.folder / "archives"))
    assert (fetched["missing"], fetched["recipes"]) == (["pause"], [])
    assert fetched["artefacts"]["pause"]["origin"] == "upstream"


def test_sweeping_is_asked_for(site) -> None:
    old = Path(site.run()["artefacts"]["pause"]["path"])
    (site.folder / "project/pause.c").write_text("int main(void) { return 1; }\n")
    os.utime(old, (0, 0))
    assert old.exists() and site.run()["changed"] is True
    assert site.run()["changed"] is False and old.exists()
    assert site.run(keep_days=1, check=True)["steps"] == [f"Remove 1 old artefacts: {old.name}"]
    assert old.exists()
    assert site.run(keep_days=1)["changed"] is True
    assert not old.exists()
    assert site.run(keep_days=1)["changed"] is False


def test_a_go_kind_asks_for_go_only_when_it_is_missing(site, monkeypatch) -> None:
    monkeypatch.setattr(bundle.build_machine, "go_folder", lambda *arguments: pytest.fail("no artefact needs Go"))
    assert site.run()["changed"] is True
