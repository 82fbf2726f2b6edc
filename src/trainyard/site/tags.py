"""Refuse tags of a call. The playbooks have no tags for parts, so such a call would succeed without doing anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .model import Problem

KNOWN = frozenset({"all", "always", "untagged", "validate"})
"""Ansible's own tags that do not skip the work, and the tag of the validation."""


def unknown_tags(wanted: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each tag of `--tags` that would skip all work."""
    for tag in sorted(set(wanted) - KNOWN):
        yield Problem(
            f"option --tags {tag}",
            "unknown",
            "the playbooks have no tags for parts, because a part needs the facts of earlier parts",
            "Run the playbook without --tags: it changes only what differs. For some hosts set -e site_hosts=HOST.",
        )
