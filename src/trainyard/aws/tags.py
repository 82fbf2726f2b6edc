"""Tags: conversion of AWS's list of pairs to a mapping, and the tags to set or remove."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.errors import TrainyardError
from .changes import Change

OWNER = "trainyard"
"""Tag of a resource created for a site; its value is the site's name for its storage."""


def to_mapping(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """Convert tags to a mapping, without AWS's own tags, which users cannot set or remove."""
    return {tag["Key"]: tag.get("Value", "") for tag in tags or () if not tag["Key"].lower().startswith("aws:")}


def require_owner(what: str, found: Mapping[str, str], owner: str) -> None:
    """Refuse a resource that was not created for this owner.

    :param what: the resource, as the beginning of a sentence.
    :param found: its tags.
    :raises TrainyardError: the owner tag differs; the message contains its value.
    """
    has = found.get(OWNER)
    if has != owner:
        raise TrainyardError(
            f"{what} was not made for {owner}: its tag {OWNER} is {has if has is not None else 'missing'}.",
            remedy=f"Set another name, or tag it {OWNER}={owner} if it is the intended resource.",
        )


def to_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Convert tags to AWS's list form, sorted by name."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def wanted_tags(wanted: Mapping[str, Any] | None, found: Mapping[str, str], purge: bool) -> dict[str, str]:
    """Return the tags that a resource will have.

    :param wanted: None keeps all existing tags.
    :param purge: remove all other tags.
    """
    if wanted is None:
        return dict(found)
    own = {str(key): str(value) for key, value in wanted.items()}
    return own if purge else {**found, **own}


def tag_changes(
    before: Mapping[str, str], after: Mapping[str, str], of: str = "it", *, ec2: bool = False
) -> list[Change]:
    """Return the calls that set and remove the tags of one resource.

    :param of: the resource, for the sentences of the steps.
    :param ec2: the resource belongs to EC2, otherwise to EFS.
    """
    set_ = {key: after[key] for key in after if before.get(key) != after[key]}
    removed = sorted(set(before) - set(after))
    changes = []
    if set_:
        said = ", ".join(f"{key}={set_[key]}" for key in sorted(set_))
        operation = "ec2:CreateTags" if ec2 else "efs:TagResource"
        changes.append(Change(f"Tag {of}: {said}", operation, {"Tags": to_list(set_)}))
    if removed:
        what = f"Remove tags of {of}: {', '.join(removed)}"
        if ec2:
            changes.append(Change(what, "ec2:DeleteTags", {"Tags": [{"Key": key} for key in removed]}))
        else:
            changes.append(Change(what, "efs:UntagResource", {"TagKeys": removed}))
    return changes
