"""The roles of a training, by topology: what each may have, and what its end means. All else reads this table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

STOPPED = "stopped"
"""Stands for the exit code of a pod that was deleted before its exit was seen."""

EXIT_STOPPED = 42
"""Told to stop by SIGTERM, and everything is saved."""

GRACE_SECONDS = 30
"""A chief needs up to 25 s to save and to end when it is told to stop; the others serve it until then."""

MANY = range(1, 1000)
MANY_OR_NONE = range(1000)
ONE = range(1, 2)
ONE_OR_NONE = range(2)

_SERVED: frozenset[int | str] = frozenset({0, EXIT_STOPPED, 143, STOPPED})
"""Of a pod that serves until it is told to stop. What SIGTERM itself ends has 143 (128 + 15)."""
_KILLED: frozenset[int | str] = _SERVED | frozenset({137})
"""A stranger's program may not listen to SIGTERM, and is killed when its grace is over (128 + 9)."""


@dataclass(frozen=True)
class RoleKind:
    """What a role may have, and what follows from its end.

    :param replicas: how many pods it may have.
    :param usual: how many it has where nobody says.
    :param reads_data: mounts the training's data.
    :param writes_run: mounts the run's folder.
    :param mended: a pod that fails is started again in its place; else its failure restarts the whole run.
    :param needed: whether the run needs it; else it is started again as often as it fails, and that ends nothing.
    :param decides: the exit of its first pod is that of the run, where no role above it decides.
    :param clean_exits: exit codes that are no failure of a run that has ended.
    :param grace: seconds from SIGTERM to SIGKILL.
    :param member: has a place in TF_CONFIG's cluster.
    :param called: the others call it on the port after TensorFlow's.
    :param computes: does the training's arithmetic, for which GPUs are.
    :param shares: reads what another role has written, so that its files must lie where both have them.
    """

    replicas: range
    usual: int = 1
    reads_data: bool = False
    writes_run: bool = False
    mended: bool = False
    needed: bool = True
    decides: bool = False
    clean_exits: frozenset[int | str] = _SERVED
    grace: int = GRACE_SECONDS
    member: bool = True
    called: bool = False
    computes: bool = False
    shares: bool = False


@dataclass(frozen=True)
class Topology:
    """Roles that make up a training.

    :param roles: by their names, in the order in which errors and pages list them.
    :param back_end: kind of the object that runs them: JobSet, Job for a single pod, or Deployment for a service.
    :param probed: role whose port a pod outside the run must not reach; empty where none listens for certain.
    """

    roles: Mapping[str, RoleKind]
    back_end: str = "JobSet"
    probed: str = ""

    def decider(self, present: Mapping[str, object]) -> str:
        """The role whose first pod decides, of the roles that have pods."""
        return next(name for name, kind in self.roles.items() if kind.decides and name in present)


_OWN = frozenset({0})
_CHIEF = RoleKind(ONE, reads_data=True, writes_run=True, decides=True, clean_exits=_OWN, called=True)
_ALONE = RoleKind(ONE, reads_data=True, writes_run=True, decides=True, clean_exits=_OWN, member=False, computes=True)

TOPOLOGIES: Mapping[str, Topology] = {
    "parameter_server": Topology(
        {
            "chief": _CHIEF,
            "ps": RoleKind(MANY),
            "worker": RoleKind(MANY, usual=2, reads_data=True, mended=True, computes=True),
            "evaluator": RoleKind(
                ONE_OR_NONE,
                usual=0,
                reads_data=True,
                writes_run=True,
                mended=True,
                needed=False,
                member=False,
                shares=True,
            ),
        },
        probed="ps",
    ),
    # Programs of others: what they listen to is not known, nor what they do when they are told to stop.
    "multi_worker": Topology(
        {
            "chief": RoleKind(ONE_OR_NONE, 0, reads_data=True, writes_run=True, decides=True, clean_exits=_KILLED),
            "ps": RoleKind(MANY_OR_NONE, 0, reads_data=True, writes_run=True, clean_exits=_KILLED),
            "worker": RoleKind(
                MANY, reads_data=True, writes_run=True, decides=True, clean_exits=_KILLED, computes=True
            ),
        }
    ),
    "single": Topology({"chief": _ALONE}, back_end="Job"),
    # Goes on until it is stopped, and may not listen to being told so.
    "service": Topology({"server": replace(_ALONE, clean_exits=_KILLED)}, back_end="Deployment"),
}

ROLES = tuple(dict.fromkeys(name for topology in TOPOLOGIES.values() for name in topology.roles))
"""Names of all roles."""


def clean_exits(topology: str, place: str, deciding: str) -> frozenset[int | str]:
    """Exit codes with which a place such as `worker-1` ends well.

    :param deciding: the place whose exit is the run's, such as `chief-0`.
    """
    if place == deciding:
        return frozenset({0})
    return TOPOLOGIES[topology].roles[place.rpartition("-")[0]].clean_exits
