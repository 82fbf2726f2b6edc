"""The pods of the whole cluster that the user may see, because rights may be limited to namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...kube.api import Object
from ...kube.reads import Reader, Unread, listing, objects


@dataclass(frozen=True)
class Everyone:
    """The readable pods.

    :param hidden: namespaces whose pods the user may not see, so that their resources are unknown.
    :param reason: why no pod could be read; else empty.
    """

    pods: Sequence[Object] = ()
    hidden: Sequence[str] = ()
    reason: str = ""

    @property
    def unread(self) -> list[str]:
        """Sentences on the missing data."""
        hidden = ", ".join(self.hidden)
        both = (self.reason, f"You may not see the resources held by pods in: {hidden}." if hidden else "")
        return [each for each in both if each]


def everyone() -> Reader[Everyone]:
    """Read the pods of all namespaces; without that right, read each namespace that the user may see."""
    found = objects((yield listing("v1", "pods")))
    if not isinstance(found, Unread):
        return Everyone(found)
    if not found.refused:
        return Everyone(reason=found.reason)
    spaces = objects((yield listing("v1", "namespaces")))
    if isinstance(spaces, Unread):
        return Everyone(reason=found.reason)
    names = sorted(str(each["metadata"]["name"]) for each in spaces)
    pods: list[Object] = []
    hidden: list[str] = []
    for name, answer in zip(names, (yield tuple(listing("v1", "pods", name) for name in names)), strict=True):
        mine = objects(answer)
        if isinstance(mine, Unread):
            hidden.append(name)
        else:
            pods += mine
    return Everyone(pods, hidden)
