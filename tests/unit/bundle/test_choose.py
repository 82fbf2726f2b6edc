"""Source or upstream: which artefact comes from where, and what is asked to find out."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.bundle import lockfile
from trainyard.bundle.artefact_store import Store
from trainyard.bundle.assemble import Assembly
from trainyard.bundle.choose import Chooser, upstream_key
from trainyard.bundle.context import Context
from trainyard.core.errors import TrainyardError

LOCK = f"""schema: 1
artefacts:
  program: {{kind: c_program, version: "1", source: "project:lock.yml", program: a}}
  pinned:
    kind: image
    version: "1"
    reference: vendor.example/a:1
    containerfile: project:lock.yml
    context: {{a: "artefact:program/a"}}
    upstream: {{image: "vendor.example/a:1@sha256:{"a" * 64}"}}
  second:
    kind: image
    version: "1"
    reference: vendor.example/b:1
    containerfile: project:lock.yml
    upstream: {{image: "vendor.example/b:1@sha256:{"b" * 64}"}}
  unpinned:
    kind: image
    version: "1"
    reference: vendor.example/c:1
    containerfile: project:lock.yml
    upstream: {{image: "vendor.example/c:1@unpinned"}}
  theirs:
    kind: vendor_image
    version: "1"
    reference: vendor.example/d:1
    upstream: {{image: "vendor.example/d:1@sha256:{"d" * 64}"}}
  own:
    kind: image
    version: "1"
    reference: site/own:1
    containerfile: project:lock.yml
    base: artefact:pinned/oci
"""


class Site:
    """A lock, a store, and a vendor that answers or does not."""

    def __init__(self, folder: Path) -> None:
        (folder / "lock.yml").write_text(LOCK)
        self.folder = folder
        self.artefacts = lockfile.load(folder / "lock.yml")
        self.store = Store(folder / "cache")
        self.asked: list[str] = []

    def choose(self, source: str, *wanted: str, answers: bool = True):
        def ask(url: str) -> bool:
            self.asked.append(url)
            return answers

        revisions = dict.fromkeys(lockfile.REQUIRED, 1)
        return Chooser(self.artefacts, self.folder, revisions, self.store, source, ask).choose(wanted)

    def origins(self, source: str, *wanted: str, answers: bool = True) -> dict[str, str]:
        return {name: choice.origin for name, choice in self.choose(source, *wanted, answers=answers).items()}


@pytest.fixture
def site(tmp_path) -> Site:
    return Site(tmp_path)


def test_source_asks_nobody(site) -> None:
    assert site.origins("source", "own") == {"own": "source", "pinned": "source", "program": "source"}
    assert site.asked == []


def test_upstream_needs_no_inputs_and_asks_nobody_before(site) -> None:
    assert site.origins("upstream", "own", "second") == {"own": "source", "pinned": "upstream", "second": "upstream"}
    assert site.asked == []


def test_upstream_refuses_what_is_not_pinned(site) -> None:
    with pytest.raises(TrainyardError, match=r"no hash for the upstream of unpinned.*tasks_from=pin"):
        site.choose("upstream", "pinned", "unpinned")


def test_auto_asks_each_host_once(site) -> None:
    found = site.origins("auto", "pinned", "second", "unpinned")
    assert {name: found[name] for name in ("pinned", "second", "unpinned")} == {
        "pinned": "upstream",
        "second": "upstream",
        "unpinned": "source",
    }
    assert site.asked == ["https://vendor.example/v2/"]


def test_auto_takes_source_where_nobody_answers(site) -> None:
    assert set(site.origins("auto", "pinned", "second", answers=False).values()) == {"source"}
    assert len(site.asked) == 1


def test_the_address_does_not_depend_on_the_machine(site, tmp_path_factory, monkeypatch) -> None:
    """What a builder makes is what its controller looks for, whatever their checkouts, caches, homes and archives."""
    here = {name: choice.key for name, choice in site.choose("source", "own").items()}
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("HOME", str(elsewhere))
    monkeypatch.chdir(elsewhere)
    other = Site(elsewhere)
    (elsewhere / "lock.yml").chmod(0o600)
    assert {name: choice.key for name, choice in other.choose("source", "own").items()} == here
    context = Context(elsewhere, elsewhere / "cache", "https://archive.example/debian", go="/opt/go/bin")
    made = Assembly(other.artefacts, ["own"], other.store, context, "source")
    context = Context(site.folder, site.folder / "cache", "")
    assert made.keys == Assembly(site.artefacts, ["own"], site.store, context, "source").keys


@pytest.mark.parametrize("there", ["source", "upstream"])
@pytest.mark.parametrize("answers", [True, False])
def test_auto_keeps_what_is_there(site, there: str, answers: bool) -> None:
    """A machine that loses its way to the vendors, or gets one, does not make everything anew."""
    site.store.add("pinned", site.choose(there, "pinned")["pinned"].key, lambda out: {})
    assert site.origins("auto", "pinned", answers=answers)["pinned"] == there
    assert site.asked == []


def test_the_way_changes_the_address_of_what_depends_on_it(site) -> None:
    built, fetched = site.choose("source", "own"), site.choose("upstream", "own")
    assert built["own"].key != fetched["own"].key
    assert fetched["pinned"].key == upstream_key(site.artefacts["pinned"]) != built["pinned"].key


@pytest.mark.parametrize("source", ["auto", "upstream", "source"])
def test_what_only_a_vendor_makes_is_fetched_when_it_is_asked_for(site, source: str) -> None:
    assert site.origins(source, "theirs", answers=False) == {"theirs": "upstream"}
    assert "theirs" not in lockfile.results(site.artefacts)
