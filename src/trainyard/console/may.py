"""The data of the page About that only the server has: the logged-in user, that user's rights, and versions."""

from __future__ import annotations

import asyncio
from typing import Any

from ..core.untrusted import clean
from ..kube.api import KubeError
from ..kube.reads import listing
from .console import Console
from .rights import ACTIONS, of_action, of_tensorboard, of_watching
from .sessions import Session

SPACES = "trainyard.dev/trainings=true"
"""Label of namespaces with runs."""
ANY = "any"
"""Placeholder for the name of a run; rights are the same for all runs of a namespace."""


async def known(console: Console, session: Session) -> dict[str, Any]:
    """Return `user`, `versions`, and `may`: for each namespace with runs a text with the user's permissions.

    :raises LoginEnded, KubeError: the token is no longer accepted, or the API server does not answer.
    """
    wanted = listing("v1", "namespaces", labels=SPACES)
    try:
        found = await console.client.get(session.token, wanted.path, wanted.query)
        spaces = sorted(str(each["metadata"]["name"]) for each in found["items"])
        texts = await asyncio.gather(*(_in(console, session, space) for space in spaces))
    except KubeError as error:
        if error.status != 403:
            raise
        spaces, texts = [], []
    may = [{"namespace": space, "text": text} for space, text in zip(spaces, texts, strict=True)]
    return {"user": clean(session.user), "versions": dict(console.config.versions), "may": may}


async def _in(console: Console, session: Session, space: str) -> str:
    parts = {"watch runs": of_watching(space), "see TensorBoards": (of_tensorboard(space),)}
    parts |= {f"{action} runs": of_action(action, space, ANY) for action in ACTIONS}
    granted = await console.rights.granted(session, [right for rights in parts.values() for right in rights])
    return ", ".join(what for what, rights in parts.items() if granted.issuperset(rights)) or "nothing"
