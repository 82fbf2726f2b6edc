"""A creation that the API server only rehearses, before what runs the run now is deleted."""

from __future__ import annotations

from ..kube.api import Api, KubeError, Object

QUOTA = "exceeded quota: "
"""In the message of a quota that is used up: what is deleted next has its share of it, and gives that back."""


def rehearse(api: Api, obj: Object) -> None:
    """Ask whether the API server would take an object, under its own name, where one of that name may be now.

    The server asks all admission plugins and policies first, and looks for the name last. So status 409 is consent.
    With another name the object would break the rule that its labels have its name.

    :raises KubeError: it would refuse the object, or does not answer; nothing was changed.
    """
    try:
        api.create(obj, dry_run=True)
    except KubeError as error:
        if error.status == 409 or (error.status == 403 and QUOTA in error.message):
            return
        raise KubeError(
            f"A new attempt at the run {obj['metadata']['name']} cannot be made: {error.message}",
            status=error.status,
            remedy=error.remedy or "Nothing was changed: the run is as it was.",
            final=error.final,
        ) from error
