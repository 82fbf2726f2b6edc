"""The module `code_image`: pack, repeat, change, go back, keep the newest, two at once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from library import code_image
from trainyard.oci import code_folder, layout

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(code, tmp_path, capsys) -> Run:
    """Run the module in this process and return its answer."""

    def call(*, check: bool = False, **options: Any) -> dict[str, Any]:
        arguments = {"folder": str(code), "store": str(tmp_path / "store"), "_ansible_check_mode": check, **options}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            code_image.main()
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return call


def test_check_pack_repeat(run, code, tmp_path) -> None:
    planned = run(check=True)
    assert planned["changed"] and planned["diff"]["before"] == {}
    assert not (tmp_path / "store").exists(), "check mode writes nothing"
    made = run(command="python worker.py")
    assert made["steps"] == planned["steps"] == [f"Pack 5 files as {made['digest']}"]
    assert made["diff"]["after"] == {"digest": made["digest"], "files": 5}
    assert (made["files"], made["size"]) == (5, sum(path.stat().st_size for path in code.rglob("*.*")))
    assert made["digest"] == planned["digest"] and made["digest"].startswith(f"sha256:{made['tag']}")
    assert json.loads(Path(made["layout"], "index.json").read_text())["manifests"][0]["digest"] == made["digest"]
    assert run()["changed"] is run(check=True)["changed"] is False


def test_a_change_shows_both_digests_and_going_back_finds_the_first(run, code) -> None:
    first = run()
    (code / "more.py").write_text("")
    second = run()
    assert second["diff"]["before"] == {"digest": first["digest"], "files": 5}
    assert second["diff"]["after"] == {"digest": second["digest"], "files": 6}
    (code / "more.py").unlink()
    third = run()
    assert third["steps"] == [f"Use {first['digest']} again"]
    assert third["diff"]["before"] == {"digest": second["digest"], "files": 6}
    assert run()["changed"] is False


def test_a_damaged_layout_is_made_anew(run) -> None:
    made = run()
    Path(made["layout"], "index.json").write_text("{}")
    again = run()
    assert (again["changed"], again["diff"]["before"]["files"]) == (True, 0)
    assert run()["changed"] is False


def test_the_newest_few_stay_and_whatever_is_in_use_today(run, code) -> None:
    layouts = []
    for number in range(4):
        (code / "worker.py").write_text(f"{number}")
        layouts.append(Path(run(keep=2)["layout"]))
    assert all(path.is_dir() for path in layouts), "another run may be pushing them"
    for age, path in enumerate(reversed(layouts)):
        os.utime(path, (time.time() - (age + 2) * layout.DAY,) * 2)
    (code / "worker.py").write_text("4")
    assert run(keep=2)["changed"]
    assert [path.is_dir() for path in layouts] == [False, False, False, True]


def test_what_a_killed_run_left_is_taken_away(run, tmp_path) -> None:
    (tmp_path / "store/.new/blobs").mkdir(parents=True)
    (tmp_path / "store/.new/stray").write_text("")
    made = run()
    assert sorted(os.listdir(tmp_path / "store")) == [".lock", Path(made["layout"]).name]
    assert sorted(os.listdir(made["layout"])) == ["blobs", "index.json", "oci-layout"]


def _put(store: Path, code: Path) -> None:
    entries = code_folder.read(code)
    layout.make_plan(store, layout.pack(code, entries), len(entries), 1).execute()


def test_two_at_once(code, tmp_path) -> None:
    codes = [tmp_path / f"code{number}" for number in range(3)]
    for number, path in enumerate(codes):
        path.mkdir()
        (path / "worker.py").write_text(f"{number}")
    with ProcessPoolExecutor(4) as pool:
        for made in [pool.submit(_put, tmp_path / "store", path) for path in codes * 4]:
            made.result(timeout=60)
    images = [layout.pack(path, code_folder.read(path)) for path in codes]
    assert all(image.is_at(layout.path_of(tmp_path / "store", image)) for image in images)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folder": "/nonexistent"}, "The code folder /nonexistent does not exist. Set the folder"),
        ({"command": "python wroker.py"}, "Did you mean worker.py?"),
        ({"command": ["python", "wroker.py"]}, "Did you mean worker.py?"),
        ({"command": "python 'worker.py"}, "cannot be read: No closing quotation"),
        ({"command": {"a": 1}}, "it is neither a list nor a string"),
        ({"store": "/dev/null/store"}, "cannot be kept in /dev/null/store: Not a directory"),
    ],
)
def test_refusals(run, options: dict[str, Any], message: str) -> None:
    answer = run(**options)
    assert answer["failed"] and message in answer["msg"]
