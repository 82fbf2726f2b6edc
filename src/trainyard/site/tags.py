"""Tags of a call. The playbooks have none for their parts: a call with one would end well and have done nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .model import Problem

KNOWN = frozenset({"all", "always", "untagged", "validate"})
"""Ansible's own that leave the work in, and the tag of the validation."""


def unknown_tags(wanted: Collection[str]) -> Iterator[Problem]:
    """A problem for each tag of `--tags` with which no task of the work would run."""
    for tag in sorted(set(wanted) - KNOWN):
        yield Problem(
            f"option --tags {tag}",
            "of no part",
            "the playbooks have no tags for parts, because a part needs the facts of those before it",
            "Call the playbook without --tags: a run changes nothing that is as it should be. For some hosts use "
            "-e site_hosts=HOST.",
        )
