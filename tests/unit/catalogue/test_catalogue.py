"""Reading folders of workloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.trainings.catalogue import read_catalogue

GOOD = "description: One\nkind: training\n"


def folder(path: Path, **files: str) -> Path:
    path.mkdir()
    for name, text in files.items():
        (path / f"{name}.yml").write_text(text, encoding="utf-8")
    return path


def test_entries_have_the_names_of_their_files(tmp_path: Path) -> None:
    own, site = folder(tmp_path / "own", one=GOOD), folder(tmp_path / "site", two=GOOD)
    assert sorted(read_catalogue([site], own)) == ["one", "two"]


def test_one_name_in_two_folders_names_both_files(tmp_path: Path) -> None:
    own, site = folder(tmp_path / "own", one=GOOD), folder(tmp_path / "site", one=GOOD)
    with pytest.raises(TrainyardError) as refused:
        read_catalogue([site], own)
    assert f"{own}/one.yml and {site}/one.yml" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: training\n", "Set a description"),
        ("[1]", "is not an entry"),
        ("description: One\nkind: ritual\n", "the kind is 'ritual'"),
        ("description: One\nkind: service\n", "the kind is service, but the topology is None"),
        ("description: One\nkind: training\ntopology: service\n", "the kind is training, but the topology is service"),
        ("description: One\n", "Use one of: training"),
        ("a: [", "cannot be read"),
    ],
)
def test_files_that_are_no_entries(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TrainyardError, match=r"one\.yml") as refused:
        read_catalogue([], folder(tmp_path / "own", one=text))
    assert said in str(refused.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match=r"gone is not a folder\. Set folders in workloads_catalogues"):
        read_catalogue([tmp_path / "gone"], folder(tmp_path / "own"))


def test_a_folder_below_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "site", one=GOOD)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert list(read_catalogue(["~/site"], folder(tmp_path / "own"))) == ["one"]
