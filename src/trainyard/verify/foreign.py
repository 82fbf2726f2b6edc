"""Checks of unmanaged rights and entry points (`doors`), and the exceptions that the site allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.finding import Finding, accepted_of, allowed_by
from ..core.untrusted import at, items
from ..drift.foreign import World, door_findings, right_findings
from ..drift.kubernetes import is_static
from ..drift.rendered import Rendered, missing_parts
from .reading import Unread
from .verdict import FAIL, PASS, UNKNOWN, Check, judge

WELL = {
    "rights": "only the site and Kubernetes grant rights over the cluster",
    "doors": "no Service, pod, webhook or API opens more than the site renders",
}
FLAG = "--kubelet-certificate-authority="
UNVERIFIED = (
    "the API server in {} does not verify kubelets, so logs and commands can be intercepted between the nodes: "
    "add kubelet-certificate-authority, see 'Change the control plane' in docs/operations.md"
)


@dataclass(frozen=True)
class Judge:
    """The judge of rights and entry points (`doors`).

    :param rendered: record of the objects that runs of this controller render.
    :param recorded: parts that it must contain; if one is missing, the checks are unknown.
    :param accepted: exceptions of the site, in the form of `accepted_of`.
    :param control_plane: names of the control plane nodes.
    :param system: system namespaces.
    """

    rendered: Rendered
    recorded: Sequence[str] = ()
    accepted: Sequence[Any] = ()
    control_plane: Sequence[str] = ()
    system: Sequence[str] = ()

    def checks(self, seen: World | Unread) -> list[Check]:
        """Return the checks `rights` and `doors`."""
        return [judge(name, seen, self._rule(name, look)) for name, look in self._looks().items()]

    def allowed(self, seen: World | Unread) -> list[dict[str, str]]:
        """Return the findings that the site allows, each with its reason, for the receipt."""
        if isinstance(seen, Unread) or missing_parts(self.rendered, self.recorded):
            return []
        accepted = accepted_of(self.accepted)
        found = [each for look in self._looks().values() for each in look(seen)]
        pairs = [(each, allowed_by(each, accepted)) for each in found]
        return [{"name": each.subject, "found": each.before, "reason": entry.reason} for each, entry in pairs if entry]

    def _looks(self) -> Mapping[str, Callable[[World], Iterable[Finding]]]:
        return {
            "rights": lambda seen: right_findings(seen, self.rendered, self.system),
            "doors": lambda seen: door_findings(seen, self.rendered, self.control_plane),
        }

    def _rule(self, name: str, look: Callable[[World], Iterable[Finding]]) -> Callable[[World], Check]:
        def rule(seen: World) -> Check:
            if missing := missing_parts(self.rendered, self.recorded):
                lacks = f"this controller has no record of the rendered objects of {', '.join(missing)}"
                return Check(name, UNKNOWN, f"{lacks}: run site.yml, which writes it")
            accepted = accepted_of(self.accepted)
            wrong = [f"{each.subject}: {each.before}" for each in look(seen) if allowed_by(each, accepted) is None]
            return Check(name, FAIL, "; ".join(wrong)) if wrong else Check(name, PASS, WELL[name])

        return rule

    def warnings(self, seen: World | Unread) -> list[str]:
        """Return one warning that names each API server that does not verify kubelets."""
        if isinstance(seen, Unread):
            return []
        servers = [
            str(each["metadata"]["name"])
            for each in seen.objects
            if is_static(each, self.control_plane)
            and each["metadata"]["name"].startswith("kube-apiserver-")
            and not _verifies(each)
        ]
        return [UNVERIFIED.format(", ".join(sorted(servers)))] if servers else []


def _verifies(pod: Mapping[str, Any]) -> bool:
    container = at(pod, "spec", "containers", 0)
    words = [*items(at(container, "command")), *items(at(container, "args"))]
    return any(str(each).startswith(FLAG) and str(each) != FLAG for each in words)
