"""What a run is called, and by what another program of that name is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.filter.resolved_trainings import resolved_trainings
from trainyard.trainings.catalogue import read_catalogue
from trainyard.trainings.resolve import name_of_folder, resolve, resolve_all, run_name, strange_keys
from trainyard.trainings.site_images import Defaults
from trainyard.trainings.spec import check

LONG = "a_program_with_a_name_of_more_than_forty_letters"
CATALOGUE = read_catalogue([])


def own(**more: Any) -> dict[str, Any]:
    return {"workload": "own", "command": "python main.py", **more}


def complete(**more: Any) -> dict[str, Any]:
    (found,) = resolve_all([own(**more)], CATALOGUE)
    return found.bound(Defaults(logs={"claim": "c"}, known=False))


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("./mine", "mine"),
        ("/home/a/Mine_Model.v2/", "mine-model-v2"),
        ("~/programs/../M\u00fcnchen", "munchen"),
        ("2024-mnist", "own-2024-mnist"),
        ("--x--", "x"),
        (LONG, "a-program-with-a-name-of-more-t-1da2a4df"),
        (LONG + "s", "a-program-with-a-name-of-more-t-191fe76a"),
        ("\u8bad\u7ec3", ""),
        ("/", ""),
        ("...", ""),
    ],
)
def test_a_folder_gives_a_name_that_kubernetes_takes(folder: str, name: str) -> None:
    assert name_of_folder(folder) == name
    assert len(name) <= 40


def test_the_folder_from_which_ansible_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert name_of_folder(".") == name_of_folder("") == "mine"


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (own(), "own"),
        (own(run="wide", code={"folder": "./mine"}), "wide"),
        (own(code={"folder": "./mine"}), "mine"),
        (own(code="registry.example.org/mine@sha256:1"), "own"),
        ({"workload": "cnn_ps", "code": {"folder": "./mine"}}, "cnn-ps"),
    ],
)
def test_only_runs_of_own_without_a_name_have_that_of_their_folder(wanted: dict, name: str) -> None:
    assert run_name(wanted) == name


def test_two_folders_are_two_runs_with_files_of_their_own() -> None:
    first, second = (complete(code={"folder": f"/home/a/{name}"}) for name in ("one", "two"))
    assert (first["name"], second["name"]) == ("one", "two")
    (run,) = (each["expected"] for each in resolved_trainings([own(code={"folder": "/home/a/one"})], []))
    assert (run["name"], run["description_hash"]) == ("one", first["description_hash"])


def test_a_program_is_known_by_its_folder_and_its_command() -> None:
    code = {"folder": "/home/a/one"}
    programs = [
        complete(code=code),
        complete(code={"folder": "/home/b/one"}),
        complete(code=code, command="python other.py"),
    ]
    assert len({each["program"] for each in programs}) == 3
    assert complete(code=code, run="x")["program"] == programs[0]["program"] == complete(code=code)["program"]
    assert (programs[0]["named"], complete(code=code, run="x")["named"]) == (False, True)
    assert check(programs[0])[1] == []
    assert not complete().keys() & {"program", "named"}


def test_runs_that_are_on_record_keep_their_description() -> None:
    # As the version before wrote them: a passed run of a site is not run again for its program.
    wide = own(run="wide", code={"folder": "/home/a/one"})
    hashes = [resolve(each, CATALOGUE["own"]).description["description_hash"] for each in (wide, own())]
    assert hashes == [
        "535e4b36ad27bb1c6c9c82a4b32958f226fdf20732ceaff5f8ec25562a0372cc",
        "9701ed54af595a6565e8d823a155829c4fcdc421c31f044b8a8dbf8bfb160c24",
    ]
    assert [each.key for each in strange_keys(own(program="x", named=False), CATALOGUE["own"])] == ["program", "named"]
