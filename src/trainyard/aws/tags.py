"""Tags: AWS's list of pairs as a mapping, and what has to be set or removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.errors import TrainyardError
from .changes import Change

OWNER = "trainyard"
"""Tag by which a resource is known as made for a site; its value is the site's name for its storage."""


def to_mapping(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """Tags without those of AWS itself, which nobody else may set or remove."""
    return {tag["Key"]: tag.get("Value", "") for tag in tags or () if not tag["Key"].lower().startswith("aws:")}


def require_owner(what: str, found: Mapping[str, str], owner: str) -> None:
    """Refuse a resource that was not made for this owner.

    :param what: the resource, as the beginning of a sentence.
    :param found: its tags.
    :raises TrainyardError: names what its tag says.
    """
    has = found.get(OWNER)
    if has != owner:
        raise TrainyardError(
            f"{what} was not made for {owner}: its tag {OWNER} is {has if has is not None else 'missing'}.",
            remedy=f"Take another name, or tag it {OWNER}={owner} where it is meant.",
        )


def to_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as AWS takes them, in the order of their names."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def wanted_tags(wanted: Mapping[str, Any] | None, found: Mapping[str, str], purge: bool) -> dict[str, str]:
    """The tags that a resource is to have in the end.

    :param wanted: None leaves all alone.
    :param purge: others than the wanted ones go.
    """
    if wanted is None:
        return dict(found)
    own = {str(key): str(value) for key, value in wanted.items()}
    return own if purge else {**found, **own}


def tag_changes(
    before: Mapping[str, str], after: Mapping[str, str], of: str = "it", *, ec2: bool = False
) -> list[Change]:
    """The calls that set and remove the tags of one resource.

    :param of: the resource, for the sentences.
    :param ec2: one of EC2, else one of EFS.
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
