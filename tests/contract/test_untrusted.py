"""Tests that values from outside become paths, numbers and terminal text only through the gate `core/untrusted.py`."""

from __future__ import annotations

import ast

import pytest
from checkout import ROOT
from taint_files import findings, product_files

INVENTORY = {
    "src/trainyard/oci/": "the folder of code and the values of images, which the inventory and the call name",
    "src/trainyard/trainings/spec.py": "the description of a training from the inventory, with its key `data`",
    "src/trainyard/site/": "the inventory itself",
}
"""Places where `data` and similar names are keys of the inventory, whose writer owns the site."""
TERMINAL = "src/trainyard/cli/terminal.py"
OTHERS = {
    "src/trainyard/console/__main__.py": "prints faults of its own environment to the log of its pod",
    "src/trainyard/site_lock/keeper.py": "prints JSON to the program that has started it",
    "src/trainyard/gpu/proof/main.py": "runs on hosts that have Python alone; its report cleans each text",
    "src/trainyard/gpu/proof/in_namespace.py": "prints JSON to the program that has started it",
    "src/trainyard/gpu/proof/with_tensorflow.py": "prints JSON to the program that has started it",
    "src/trainyard/schedule/scheduled.py": "runs before the revision, whose terminal it would be, is chosen",
}
PRINTERS = {"echo", "secho", "print", "add_row", "from_markup"}
"""Calls that print a text to a terminal, or interpret it as Rich markup."""


def test_values_from_outside_pass_the_gate_before_they_are_numbers_or_paths() -> None:
    found = findings(product_files(ROOT))
    assert not (left := [str(each) for each in found if not each.path.startswith(tuple(INVENTORY))]), "\n".join(left)


DIRECT = """
import os
def f(obj):
    {}
"""


@pytest.mark.parametrize(
    "line",
    [
        "return int(obj['metadata']['labels'].get('a'))",
        "return float((obj.get('metadata') or {}).get('annotations', {})['x'])",
        "notes = obj['metadata']['annotations']\n    return open(os.path.join('/x', notes['y']))",
        "return [int(value) for value in obj['data'].values()]",
        "return open(f\"/tmp/{obj.get('ansible_facts')}\")",
        "for key in obj['labels']:\n        os.makedirs('/x/' + key)",
        "return folder / obj['metadata']['name']",
        "if (found := obj['data'].get('k')):\n        return int(found.strip())",
    ],
)
def test_the_reading_finds_what_it_looks_for(line: str) -> None:
    assert findings({"x.py": DIRECT.format(line)}), line


def test_the_reading_follows_functions() -> None:
    label = "def label(obj):\n    return obj['metadata']['labels']['a']\n"
    assert findings({"a.py": label, "b.py": "from a import label\ndef f(obj):\n    return int(label(obj))\n"})
    assert findings(
        {"a.py": label + "def major(text):\n    return int(text)\ndef f(obj):\n    return major(label(obj))\n"}
    )


@pytest.mark.parametrize(
    "line", ["return whole(obj['data']['a'])", "return int(obj['spec'])", "return len(obj['data'])"]
)
def test_the_reading_finds_no_fault_with_checked_values(line: str) -> None:
    assert not findings({"x.py": DIRECT.format(line)})


def test_one_file_prints() -> None:
    """Every text of a command passes the file that cleans it; none is interpreted as markup."""
    found = []
    files = {path: text for path, text in product_files(ROOT).items() if path.startswith("src/trainyard/")}
    assert {TERMINAL, *OTHERS} < files.keys()
    for path, text in files.items():
        if path in {TERMINAL, *OTHERS}:
            continue
        for node in ast.walk(ast.parse(text)):
            called = node.func if isinstance(node, ast.Call) else None
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in PRINTERS and getattr(getattr(called, "value", None), "id", "") != "terminal":
                found.append(f"{path}:{node.lineno}: {name}")  # type: ignore[attr-defined]
    assert not found, "\n".join(found)
