"""The pods of the whole cluster, as far as whoever asks may see them: rights end at namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...kube.api import Object
from ...kube.reads import Reader, Unread, listing, objects


@dataclass(frozen=True)
class Everyone:
    """What was read.

    :param hidden: namespaces whose pods may not be seen; what they hold is not known.
    :param reason: why no pod at all could be read; else empty.
    """

    pods: Sequence[Object] = ()
    hidden: Sequence[str] = ()
    reason: str = ""

    @property
    def unread(self) -> list[str]:
        """Sentences on what is not known."""
        hidden = ", ".join(self.hidden)
        both = (self.reason, f"What the pods of these namespaces hold is not known to you: {hidden}." if hidden else "")
        return [each for each in both if each]


def everyone() -> Reader[Everyone]:
    """Of all namespaces at once; of who may not see that, of each namespace that he may see."""
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
