"""The zoo: hosts that other people set up, as data. Each row is a file of tests/zoo/hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HOSTS = Path(__file__).parent / "hosts"
TRAITS = Path(__file__).parent / "traits.yml"
KINDS = {"container": "container", "machine": "emulated machine", "tree": "files only"}
"""Kinds of a row -> its word in the documentation."""
WORKS, REFUSED = "works", "refused"


@dataclass(frozen=True)
class Reason:
    """An expected reason.

    :param code: key of the table of checks; `cause` and `remedy` are patterns (re.search).
    """

    code: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class Row:
    """One host.

    :param about: its trait; `like`: servers that have it.
    :param kind: a container or an emulated machine of a lab, or a tree of files in a unit test.
    :param expected: `works` or `refused`; a refused host is unchanged afterwards.
    :param prepare: Ansible tasks that give a lab's node this trait; `variables`: the host's in the inventory.
    :param packages: Debian packages that the node has, of the artefact debian_packages_zoo.
    :param front: Ansible reaches the host at an address of the controller.
    :param reasons: all expected reasons of a refused host.
    :param works_with: variables with which the host works; empty if no variable helps.
    :param commands: whether the host works after the commands of the remedies, which are in backticks.
    :param report: pattern of the report's text about a working host.
    :param keeps: shell commands that succeed on the host as long as it has what its owner needs.
    :param limits: properties of real servers that the imitation lacks.
    :param files: of a tree, path -> content; `machine` is its architecture (`uname -m`).
    """

    name: str
    about: str
    like: str
    kind: str
    expected: str
    limits: str
    prepare: Sequence[Mapping[str, Any]] = ()
    packages: Sequence[str] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    reasons: Sequence[Reason] = ()
    works_with: Mapping[str, Any] = field(default_factory=dict)
    commands: bool = False
    front: bool = False
    keeps: str = ""
    report: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    machine: str = "x86_64"


def rows() -> list[Row]:
    """Return all rows, sorted by name."""
    found = []
    for path in sorted(HOSTS.glob("*.yml")):
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        reasons = [Reason(**each) for each in values.pop("reasons", [])]
        found.append(Row(name=path.stem, reasons=reasons, **values))
    return found


STATES = {
    "works": "works",
    "imitated": "imitated",
    "refused": "refused",
    "open": "**breaks a site**",
    "unproven": "unproven",
}
"""States of a trait -> words in the documentation."""


@dataclass(frozen=True)
class Trait:
    """A trait of servers.

    :param how: the behaviour, the check that refuses, or why it is unproven.
    :param proof: path of a test or scenario, or name of a row; empty without one.
    :param defect: its number in the review of version 18d384b; empty if that version had no fault there.
    """

    trait: str
    state: str
    how: str
    proof: str
    defect: str = ""


def traits() -> list[Trait]:
    """Return all traits in the order of their file."""
    return [Trait(**values) for values in yaml.safe_load(TRAITS.read_text(encoding="utf-8"))]
