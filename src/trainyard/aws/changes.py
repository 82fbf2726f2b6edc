"""AWS changes as data, and the tags of a resource.

A change is the single API call that makes it, so that plans can be compared without making calls. The second part
converts AWS's list of tags to a mapping, and finds the tags to set or remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import TrainyardError


@dataclass(frozen=True)
class Change:
    """One write.

    :param what: imperative sentence for the user.
    :param operation: service and name of the call, such as `efs:TagResource`.
    :param parameters: parameters of the call. The IDs of resources that the plan creates are added at call time.
    :param fine: AWS error codes which mean that the change is already done.
    """

    what: str
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fine: tuple[str, ...] = ()


def differing(names: Sequence[str], wanted: object, found: object) -> list[str]:
    """Return the properties whose desired and observed values differ, each as `property is X, not Y`.

    :param names: names of the properties; a desired value of None is ignored.
    """
    pairs = [(name, getattr(wanted, name), getattr(found, name)) for name in names]
    return [
        f"{name} is {'none' if have in (None, '') else have}, not {want}"
        for name, want, have in pairs
        if want is not None and want != have
    ]


def require_confirmation(file_system_id: str, confirm: str, what: str) -> None:
    """Refuse a deletion that the caller has not confirmed.

    :raises TrainyardError: the confirmation is not the id of the file system.
    """
    if not file_system_id or confirm != file_system_id:
        raise TrainyardError(
            f"{what} of {file_system_id or 'no file system'} is not deleted: the confirmation is "
            f"{confirm or 'empty'}, not its id.",
            remedy="Set the confirmation to the id of the file system. The deletion cannot be undone.",
        )


def require_file_system(file_system_id: str, check_mode: bool) -> None:
    """Refuse an empty file system id, except in check mode, which may plan for a future file system.

    :raises TrainyardError: the id is empty.
    """
    if not file_system_id and not check_mode:
        raise TrainyardError(
            "file_system_id is empty.", remedy="Create the file system first. It may be empty only in check mode."
        )


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
