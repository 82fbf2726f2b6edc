"""Dry run of a creation, before the current object of a run is deleted."""

from __future__ import annotations

from ..kube.api import Api, KubeError, Object

QUOTA = "exceeded quota: "
"""Part of the message of an exhausted quota. The object that is deleted next releases its share."""


def rehearse(api: Api, obj: Object) -> None:
    """Check by a dry run that the API server accepts an object, whose name may be in use.

    The server runs all admission plugins and policies first and checks the name last, so status 409 means acceptance.
    Under another name the object would violate the policy that its labels contain its name.

    :raises KubeError: the server refuses the object or does not answer; nothing was changed.
    """
    try:
        api.create(obj, dry_run=True)
    except KubeError as error:
        if error.status == 409 or (error.status == 403 and QUOTA in error.message):
            return
        raise KubeError(
            f"A new attempt at the run {obj['metadata']['name']} cannot be created: {error.message}",
            status=error.status,
            remedy=error.remedy or "Nothing was changed.",
            final=error.final,
        ) from error
