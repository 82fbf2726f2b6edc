"""Commands, shell lines and arguments of a call and of a description."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.site.test_names_of_pods import CATALOGUE, called, refused
from trainyard.core.errors import TrainyardError
from trainyard.site.short_names import after_command, of_call, train_call
from trainyard.trainings.resolve import resolve, words_of

ENTRY = {**CATALOGUE["own"], "image": {"repository": "tensorflow", "artefact": "image_tensorflow"}}


def worker(**wanted: Any) -> dict[str, Any]:
    """Return the worker of a program, as the module gets it."""
    roles = resolve({"workload": "own", "run": "mine", **wanted}, ENTRY).description["roles"]
    return next(role for role in roles if role["name"] == "worker")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python train.py --lr=0.1 'a b'", ["python", "train.py", "--lr=0.1", "a b"]),
        ("bash -c 'cd data && python x.py | tee log'", ["bash", "-c", "cd data && python x.py | tee log"]),
        ("grep --regexp=end$ file", ["grep", "--regexp=end$", "file"]),
        ("python x.py --price=$5", ["python", "x.py", "--price=$5"]),
        ("python x.py 'a;b'", ["python", "x.py", "a;b"]),
    ],
)
def test_words_that_run_as_written(command: str, words: list[str]) -> None:
    assert words_of(command) == words


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("python a.py && python b.py", "&&"),
        ("python a.py | tee log", "|"),
        ("python a.py > log", ">"),
        ("python a.py; python b.py", "a.py;"),
        ("python a.py --dir $LOG_DIR/x", "$LOG_DIR/x"),
        ("python a.py --dir=${LOG_DIR}", "--dir=${LOG_DIR}"),
        ("TF_USE_LEGACY_KERAS=1 python a.py", "TF_USE_LEGACY_KERAS=1"),
        ("cd src", "cd"),
    ],
)
def test_a_command_that_needs_a_shell_is_refused(command: str, word: str) -> None:
    with pytest.raises(TrainyardError) as raised:
        words_of(command)
    assert repr(word) in raised.value.message
    assert raised.value.remedy.startswith("Set shell instead of command")


def test_a_list_of_words_passes_as_it_is() -> None:
    assert worker(command=["echo", "$HOME", "&&"])["command"] == ["echo", "$HOME", "&&"]


def test_a_shell_line_runs_in_a_shell() -> None:
    line = "python a.py && exec python b.py --dir $LOG_DIR"
    found = worker(shell=line)
    assert found["command"] == ["/bin/sh", "-c", line]
    assert "shell" not in found


def test_an_own_image_may_have_an_entrypoint() -> None:
    found = worker(image="r/i:1", args="--epochs 3 'a b'")
    assert (found["args"], found["entrypoint"]) == (["--epochs", "3", "a b"], True)
    assert "entrypoint" not in worker(), "the project's image has none"


def test_arguments_may_look_like_assignments() -> None:
    assert worker(image="r/i:1", args="lr=0.1 model=cnn")["args"] == ["lr=0.1", "model=cnn"]
    with pytest.raises(TrainyardError, match="which only a shell understands"):
        worker(image="r/i:1", args="--dir $LOG_DIR")


def test_two_forms_of_one_command() -> None:
    both = {"command": "python a.py", "shell": "python a.py"}
    with pytest.raises(TrainyardError, match="command and shell are both set"):
        worker(**both)
    assert "set together with command" in refused(workload="own", **both)


def test_the_form_of_a_call_replaces_that_of_the_inventory() -> None:
    listed = [{"workload": "own", "run": "mine", "command": "python a.py"}]
    call, problems = train_call({"workload": "own", "run": "mine", "shell": "b && c"}, listed, CATALOGUE)
    assert call and not problems
    assert (call.wanted.get("command"), call.wanted["shell"]) == (None, "b && c")


def test_lines_of_a_call_reach_to_their_ends() -> None:
    options = ["shell=python a.py n=5 && b", "args=--lr 0.1 --name=x", "workers=2"]
    found, words = of_call(options, lambda option: dict([option.split("=")]))
    assert found == {"shell": "python a.py n=5 && b", "args": "--lr 0.1 --name=x", "workers": "2"}
    assert words["n"] == "5"
    assert called(workload="own", args="--lr 0.1").wanted["args"] == "--lr 0.1"


@pytest.mark.parametrize("name", ["command", "shell", "args"])
def test_words_after_a_line_are_ambiguous(name: str) -> None:
    (problem,) = after_command([f"workload=own {name}=python a.py"])
    assert f"Give the {name} in a separate -e" in str(problem)


def test_a_run_that_site_yml_does_not_follow_is_the_same_run() -> None:
    wanted = {"workload": "own", "run": "mine", "command": "python a.py"}
    followed, left = resolve(wanted, ENTRY), resolve({**wanted, "wait": False}, ENTRY)
    assert (followed.wait, left.wait) == (True, False)
    assert followed.description == left.description
    with pytest.raises(TrainyardError, match="wait of mine is not true or false"):
        resolve({**wanted, "wait": "later"}, ENTRY)
