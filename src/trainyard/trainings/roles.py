"""The roles of a training by topology, with their properties and the meaning of their exits.

All other code reads this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

STOPPED = "stopped"
"""Replaces the exit code of a pod that was deleted before its exit was seen."""

EXIT_REFUSED = 2
EXIT_BOUND = 3
EXIT_DIVERGED = 4
EXIT_VOLUME = 5
EXIT_STOPPED = 42
EXIT_STALLED = 75
"""Exit codes of the programs in the images, as in `engine.errors`: invalid input; accuracy below the bound; a loss that
is not finite; a faulty volume (full, not accessible or damaged); SIGTERM, with everything saved; no progress."""

GRACE_SECONDS = 30
"""Default grace period. After SIGTERM a chief needs up to 25 s to save and to end; the others serve it until then."""

MANY = range(1, 1000)
MANY_OR_NONE = range(1000)
ONE = range(1, 2)
ONE_OR_NONE = range(2)

_SERVED: frozenset[int | str] = frozenset({0, EXIT_STOPPED, 143, STOPPED})
"""Clean exit codes of a pod that serves until SIGTERM. A process that SIGTERM itself ends has 143 (128 + 15)."""
_KILLED: frozenset[int | str] = _SERVED | frozenset({137})
"""The same for a user's program, which may ignore SIGTERM and is killed after its grace period (128 + 9)."""


@dataclass(frozen=True)
class RoleKind:
    """Properties of a role, and the consequences of its end.

    :param replicas: allowed numbers of pods.
    :param usual: default number of pods.
    :param reads_data: mounts the training's data.
    :param writes_run: mounts the run's folder.
    :param restarted: a failed pod is restarted in place; else its failure restarts the whole run.
    :param needed: whether the run needs the role; else its failed pods are restarted without limit.
    :param decides: the exit of its first pod decides the run, unless an earlier role of the topology decides.
    :param clean_exits: exit codes that are no failure once the run has ended.
    :param grace: seconds from SIGTERM to SIGKILL.
    :param member: is part of TF_CONFIG's cluster.
    :param called: the other roles call it on the port after TensorFlow's.
    :param computes: does the training's computation, which uses GPUs.
    :param shares: reads files that another role writes, and thus needs shared storage.
    """

    replicas: range
    usual: int = 1
    reads_data: bool = False
    writes_run: bool = False
    restarted: bool = False
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
    """The roles that make up a training.

    :param roles: roles by name, in the order in which errors and pages list them.
    :param back_end: kind of the object that runs them: JobSet, Job for a single pod, or Deployment for a service.
    :param probed: role whose port a pod outside the run must not reach; empty if no port is certain to be in use.
    """

    roles: Mapping[str, RoleKind]
    back_end: str = "JobSet"
    probed: str = ""

    def decider(self, present: Mapping[str, object]) -> str:
        """Return the role whose first pod decides the run.

        :param present: the roles that have pods.
        """
        return next(name for name, kind in self.roles.items() if kind.decides and name in present)


_OWN = frozenset({0})
_CHIEF = RoleKind(ONE, reads_data=True, writes_run=True, decides=True, clean_exits=_OWN, called=True)
_ALONE = RoleKind(ONE, reads_data=True, writes_run=True, decides=True, clean_exits=_OWN, member=False, computes=True)

TOPOLOGIES: Mapping[str, Topology] = {
    "parameter_server": Topology(
        {
            "chief": _CHIEF,
            "ps": RoleKind(MANY),
            "worker": RoleKind(MANY, usual=2, reads_data=True, restarted=True, computes=True),
            "evaluator": RoleKind(
                ONE_OR_NONE,
                usual=0,
                reads_data=True,
                writes_run=True,
                restarted=True,
                needed=False,
                member=False,
                shares=True,
            ),
        },
        probed="ps",
    ),
    # Programs of users: their ports and their reaction to SIGTERM are unknown.
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
    # Runs until it is stopped, and may ignore SIGTERM.
    "service": Topology({"server": replace(_ALONE, clean_exits=_KILLED)}, back_end="Deployment"),
}

ROLES = tuple(dict.fromkeys(name for topology in TOPOLOGIES.values() for name in topology.roles))
"""Names of all roles."""


def clean_exits(topology: str, place: str, deciding: str) -> frozenset[int | str]:
    """Return the exit codes that are a clean end of a place such as `worker-1`.

    :param deciding: the place whose exit decides the run, such as `chief-0`.
    """
    if place == deciding:
        return frozenset({0})
    return TOPOLOGIES[topology].roles[place.rpartition("-")[0]].clean_exits
