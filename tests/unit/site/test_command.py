"""The words of a call's command, and the other options beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.parsing.splitter import parse_kv

from trainyard.site.short_names import after_command, of_call, words_taken
from trainyard.site.site_model import Option, Site

SITE = Site(options={"bundle_lock": Option()}, roles=frozenset({"workloads"}))


def read(option: str) -> dict[str, Any]:
    """One `-e` as Ansible reads it; a file says one thing."""
    if option.startswith("@"):
        return {"from": "a file"}
    return json.loads(option) if option.startswith("{") else parse_kv(option)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python worker.py", {}),
        ("python w.py --n=5 a=b", {"--n": "5", "a": "b"}),
        ("python train.py workers=4 data=cifar10 run=x", {"workers": "4", "data": "cifar10", "run": "x"}),
        ("sh -c 'a b'", {}),
    ],
)
def test_a_command_is_all_that_stands_behind_its_name(command: str, words: dict[str, Any]) -> None:
    option = f"command={command}"
    for options in (["run=r workers=2", option, "@file.yml"], [option, "@file.yml", "run=r workers=2"]):
        given, taken = of_call(options, read)
        assert given == {"run": "r", "workers": "2", "command": command, "from": "a file"}
        assert taken == words


@pytest.mark.parametrize(
    "options",
    [
        ["command='python worker.py n=5' run=r"],
        ['{"command": "python worker.py n=5", "run": "r"}'],
        ["run=x command=other", '{"command": "python worker.py n=5", "run": "r"}'],
        ["", "run=r", 'command="python worker.py n=5"'],
    ],
)
def test_a_command_that_ansible_has_read_whole_stays(options: list[str]) -> None:
    assert of_call(options, read) == ({"command": "python worker.py n=5", "run": "r"}, {})
    assert list(words_taken({}, SITE)) == []


@pytest.mark.parametrize(
    "name",
    ["bundle_lock", "site_dir", "supply", "workloads_state", "ansible_host", "_x", "__workloads_call", "playbook_dir"],
)
def test_a_word_of_a_command_that_sets_a_variable_of_the_site(name: str) -> None:
    _, words = of_call([f"command=python train.py {name}=/tmp/x lr=0.1 workers=4"], read)
    (problem,) = words_taken(words, SITE)
    assert str(problem).startswith(f'variable {name} is "/tmp/x": a word of the command, but Ansible sets')
    assert '-e \'{"command"' in str(problem)


def test_words_that_may_belong_to_a_command() -> None:
    (problem,) = after_command(["run=r command=python workers=4", "command=python workers=4", "@command=a b", "run=r"])
    assert str(problem).startswith(
        'variable command is "python": followed by "workers=4", which may belong to it. Give'
    )
    assert (
        list(after_command(["command='python a.py' workers=4", "workers=4 command=python", '{"command": "a b=c"}']))
        == []
    )
