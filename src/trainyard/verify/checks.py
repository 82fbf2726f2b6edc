"""The table of checks: a new check is a row here, the function that it names, and a row in the role's README.

A row has the name of its check, the check, and the condition under which the site asks for it. The order is that of the
receipt: the most interesting first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Generic, TypeVar

from ..core.untrusted import mapping
from ..kube.gpu_offer import offered
from ..trainings.roles import TOPOLOGIES
from . import cluster_checks, gpu_checks, training_checks
from .access_checks import Access, Judge, console, kubelet_certificates, usage
from .cluster_checks import Expected, all_pods, images_locked, node_versions, nodes_ready, probed, system_pods
from .observation import Observation, RunSeen, Unread, Wanted
from .verdict import FAIL, UNKNOWN, Check, judge

V = TypeVar("V")


@dataclass(frozen=True)
class SiteView:
    """The site as its checks see it.

    :param seen: nodes and pods, each with the reason if it could not be read.
    :param access: usage, console, certificates and rights, likewise.
    :param foreign: the judge of rights and entry points.
    :param own: pods of trainings, see `images_locked`.
    """

    expected: Expected
    seen: Observation
    access: Access
    foreign: Judge
    now: datetime
    own: Mapping[str, bool] = field(default_factory=dict)

    @cached_property
    def gpus(self) -> dict[str, gpu_checks.GpuNode]:
        """The nodes with GPUs; empty if the nodes could not be read."""
        known = {} if isinstance(self.seen.nodes, Unread) else self.expected.gpus
        return {name: gpu_checks.GpuNode(**each) for name, each in sorted(known.items())}

    @cached_property
    def offers(self) -> dict[str, tuple[int, int]]:
        """GPUs that each node offers: capacity and allocatable."""
        nodes = [] if isinstance(self.seen.nodes, Unread) else self.seen.nodes
        return {node["metadata"]["name"]: offered(node) for node in nodes}


@dataclass(frozen=True)
class RunView:
    """One training as its checks see it.

    :param site_bound: accuracy that the site requires of each training with a bound; the higher bound applies.
    :param left_alone: whether the run of this name has another description and was left running.
    """

    want: Wanted
    seen: RunSeen
    now: datetime
    site_bound: float = 0.0
    left_alone: bool = False

    @property
    def ended(self) -> bool:
        # A running training may hold resources, and its isolation is recorded only at its end.
        return not self.seen.goes_on

    @property
    def probed(self) -> bool:
        """Whether an isolation probe had a port to try, or has evidence of a user's run of several pods."""
        tried = mapping(self.seen.record.get("isolation")).get("stranger_blocked") is not None
        return tried or bool(TOPOLOGIES[str(self.seen.record.get("topology", self.want.topology))].probed)


@dataclass(frozen=True)
class Row(Generic[V]):
    """A row of the table.

    :param check: judges a view; its result has the name of the row.
    :param when: whether the site asks for the check.
    """

    name: str
    check: Callable[[V], Check]
    when: Callable[[V], bool] = lambda _: True


def _console(view: SiteView) -> Check:
    check = judge("console", view.access.console, console)
    # In check mode a run may still create the console.
    return Check("console", UNKNOWN, check.detail) if view.expected.planning and check.result == FAIL else check


SITE: tuple[Row[SiteView], ...] = (
    Row("run_complete", lambda v: cluster_checks.run_complete(v.expected), lambda v: bool(v.expected.left_out)),
    Row("hosts_reached", lambda v: cluster_checks.hosts_reached(v.expected), lambda v: bool(v.expected.missing_hosts)),
    Row("api_ready", lambda v: judge("api_ready", v.seen.api, cluster_checks.api_ready)),
    Row("nodes_ready", lambda v: judge("nodes_ready", v.seen.nodes, lambda x: nodes_ready(v.expected, x))),
    Row("node_versions", lambda v: judge("node_versions", v.seen.nodes, lambda x: node_versions(v.expected, x))),
    Row("system_pods", lambda v: judge("system_pods", v.seen.pods, lambda x: system_pods(x, v.now))),
    Row(
        "images_locked",
        lambda v: judge("images_locked", all_pods(v.seen), lambda x: images_locked(v.expected.images, x, v.own)),
    ),
    Row("dns", lambda v: probed("dns", "resolve a Service name", v.expected)),
    Row("service", lambda v: probed("service", "reach the API server through its Service", v.expected)),
    Row(
        "shared_files",
        lambda v: probed("shared_files", "have the shared files mounted", v.expected),
        # Not every site mounts them.
        lambda v: any("shared_files" in probe for probe in v.expected.probes.values()),
    ),
    Row("gpu_drivers", lambda v: gpu_checks.gpu_drivers(v.gpus), lambda v: bool(v.gpus)),
    Row("gpus_offered", lambda v: gpu_checks.gpus_offered(v.gpus, v.offers), lambda v: bool(v.gpus)),
    Row("gpus_healthy", lambda v: gpu_checks.gpus_healthy(v.gpus, v.offers), lambda v: bool(v.gpus)),
    Row(
        "kubelet_certificates",
        lambda v: kubelet_certificates(v.expected.nodes, v.expected.probes),
        lambda v: v.access.serving is True,
    ),
    Row(
        "usage",
        lambda v: judge("usage", v.access.usage, lambda x: usage(v.expected.nodes, x)),
        lambda v: v.expected.usage and v.access.serving is not False,
    ),
    Row("console", _console, lambda v: bool(v.expected.console)),
    Row("rights", lambda v: v.foreign.check("rights", v.access.world)),
    Row("doors", lambda v: v.foreign.check("doors", v.access.world)),
)

RUN: tuple[Row[RunView], ...] = (
    Row(
        "training",
        lambda v: training_checks.progress(v.want, v.seen, v.now, left_alone=v.left_alone),
        lambda v: not v.ended,
    ),
    Row("training", lambda v: training_checks.training(v.want, v.seen, v.site_bound), lambda v: v.ended),
    Row(
        "isolation",
        lambda v: judge("isolation", v.seen.result, lambda _: training_checks.isolation(v.want.name, v.seen.record)),
        lambda v: v.ended and v.probed,
    ),
    Row(
        "network_policies",
        lambda v: judge(
            "network_policies", v.seen.policies, lambda x: training_checks.network_policies(v.want.name, x)
        ),
    ),
    Row(
        "released",
        lambda v: judge("released", v.seen.pods, lambda x: training_checks.released(v.want.name, x)),
        lambda v: v.ended,
    ),
)


def checks_of(rows: Sequence[Row[V]], view: V) -> list[Check]:
    """Return the checks that a site asks for, in the order of the table."""
    return [row.check(view) for row in rows if row.when(view)]


def run_checks(view: RunView) -> list[Check]:
    """Return the checks of one training, which have its name."""
    return [replace(check, run=view.want.name) for check in checks_of(RUN, view)]
