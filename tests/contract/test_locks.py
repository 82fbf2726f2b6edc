"""Tests that every playbook that changes something takes the locks first."""

from __future__ import annotations

from typing import Any

import pytest
from checkout import ROOT, read_yaml

LOOKING = {"check_hosts", "verify"}
"""Verbs that change nothing."""

SUBMITTING = {"train", "train_stop"}
"""Verbs for training, which may run concurrently: the API server resolves conflicts over one run."""

VERBS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml") if not path.stem.startswith("_"))
BEFORE = ("assert", "set_fact", "add_host", "fail", "debug", "validate_site")
"""Actions allowed before the locks: they check inputs, and change nothing."""


def plays(playbook: str) -> list[dict[str, Any]]:
    """Return the plays of a playbook in their order, with imported ones expanded; `_lock` stays one entry."""
    found = []
    for play in read_yaml(ROOT / "playbooks" / playbook):
        name = play.get("ansible.builtin.import_playbook")
        found += [play] if not name or name == "_lock.yml" else plays(name)
    return found


def touches(play: dict[str, Any]) -> bool:
    """Return whether a play could change something: it has roles, or tasks other than checks of inputs."""
    if play.get("roles") or play.get("pre_tasks"):
        return True
    return any(not [key for key in task if key.rpartition(".")[2] in BEFORE] for task in tasks(play.get("tasks", [])))


def tasks(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tasks, with those of imported files in place of the import."""
    found = []
    for task in listed:
        file = task.get("ansible.builtin.import_tasks")
        found += tasks(read_yaml(ROOT / "playbooks" / file)) if file else [task]
    return found


def test_the_list_of_verbs_is_not_empty() -> None:
    assert {"site", "reset", "lab_down", *LOOKING, *SUBMITTING} <= set(VERBS)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in LOOKING | SUBMITTING])
def test_the_locks_come_before_everything_that_changes(verb: str) -> None:
    listed = plays(f"{verb}.yml")
    places = [place for place, play in enumerate(listed) if play.get("ansible.builtin.import_playbook") == "_lock.yml"]
    assert places, f"playbooks/{verb}.yml imports no _lock.yml"
    early = [play["name"] for play in listed[: places[0]] if touches(play)]
    assert not early, f"playbooks/{verb}.yml: before the locks come {early}"


@pytest.mark.parametrize("verb", sorted(LOOKING | SUBMITTING))
def test_who_looks_or_trains_takes_none(verb: str) -> None:
    assert "_lock.yml" not in [play.get("ansible.builtin.import_playbook") for play in plays(f"{verb}.yml")]
