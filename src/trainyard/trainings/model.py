"""What a training is, as its parts hand it on. `spec` makes it from a description and checks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .names import GPU
from .roles import TOPOLOGIES, RoleKind, Topology


@dataclass(frozen=True)
class Volume:
    """Something that a role mounts, of one source: an image, a claim, or a folder that every node has."""

    name: str
    mount: str
    read_only: bool = True
    image: str = ""
    claim: str = ""
    path: str = ""


@dataclass(frozen=True)
class Role:
    """One role of a training: how many pods it has, and what each of them is.

    :param limits: quantities of `cpu`, `memory` and extended resources.
    :param requests: what the scheduler sets aside; resources not named here are requested as limited.
    :param env: name -> value, or `{secret, key}`.
    :param cuda: version of CUDA in its image, by which nodes are told whose driver is too old; empty where that is not
        known, or no matter.
    :param shm: size of the shared memory; empty for the container runtime's own 64 MiB.
    :param grace: seconds from SIGTERM to SIGKILL.
    """

    name: str
    kind: RoleKind
    replicas: int
    image: str
    command: tuple[str, ...]
    limits: Mapping[str, str]
    requests: Mapping[str, str]
    port: int = 2222
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    spread: bool = True
    cuda: str = ""
    shm: str = ""
    priority: str = ""
    env: Mapping[str, Any] = field(default_factory=dict, repr=False)
    volumes: tuple[Volume, ...] = ()
    grace: int = 30

    @property
    def gpus(self) -> int:
        """Of each pod."""
        return int(self.limits.get(GPU, "0"))

    @property
    def ports(self) -> tuple[int, ...]:
        """TensorFlow's port, and the next one where the other roles call this one."""
        return (self.port, self.port + 1) if self.kind.called else (self.port,)


@dataclass(frozen=True)
class Logs:
    """Where the run keeps metrics, events and checkpoints.

    :param node: name of the node that holds `path`; empty when a storage class provides the volume.
    :param path: folder on that node, made by the role.
    :param storage_class: class of the claim when there is no `path`; empty for the cluster's default class.
    :param claim: a claim that is there, on which every run has a folder of its name; the others are empty then.
    """

    size: str
    node: str = ""
    path: str = ""
    storage_class: str = ""
    claim: str = ""


@dataclass(frozen=True)
class Login:
    """With which the nodes pull from one registry.

    :param registry: host, and port if it has one, as image references begin. No other registry gets to see the login.
    """

    registry: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Import:
    """An archive that is brought onto the claim of a training's data before it is submitted.

    :param url: where it is, http or https.
    :param sha256: of the archive, without which it is not believed.
    :param image: Python, in which it is fetched and unpacked.
    :param code: image with the program that does it.
    :param authority: certificate authority of its server, as PEM; empty for those that everybody trusts.
    """

    url: str
    sha256: str
    image: str
    code: str
    authority: str = ""


@dataclass(frozen=True)
class Success:
    """When a run has succeeded: by the exit code alone (no metric), or when a metric has reached a bound as well."""

    metric: str = ""
    at_least: float = 0.0


@dataclass(frozen=True)
class Training:
    """One run of a training.

    :param workload: its entry of the catalogue.
    :param description_hash: of what a site says of it, with which a verdict compares what is on record; empty where
        nobody says.
    :param program: SHA-256 of its folder of code and its command; empty where it brings no folder.
    :param named: whether the site names it. Else its folder of code does, and another folder may have that name, too.
    :param roles: those that have pods, in the order of the topology.
    :param flags: passed to every role as `--key=value`, in the order of the mapping. A program without flags is told
        what it has to know by the environment alone.
    :param data_image: OCI image mounted read-only at /data.
    :param data_claim: claim mounted read-only at /data, instead of an image; both empty for none.
    :param data_folder: folder of that claim which is mounted; empty for all of it.
    :param data_import: what has to be in that folder before the training starts; None for what is there.
    :param code: OCI image mounted read-only, first in Python's path; empty for none.
    :param token: variable of a service's environment that holds the token which it asks for; empty for none.
    :param tensorboard: image of the TensorBoard that shows the claim of its files; empty for none.
    :param timeout: seconds for one attempt, after which the run is failed; 0 = unlimited.
    :param total_timeout: seconds for all attempts together; 0 = unlimited. Kept while somebody follows the run.
    :param start_timeout: seconds within which every pod must run, in every attempt.
    :param worker_retries: failures of pods that are mended in place; more restart the whole set.
    :param login: none where the nodes may pull without.
    """

    name: str
    workload: str
    namespace: str
    topology: str
    roles: Mapping[str, Role]
    flags: Mapping[str, Any]
    logs: Logs
    description_hash: str = ""
    program: str = ""
    named: bool = True
    data_image: str = ""
    data_claim: str = ""
    data_folder: str = ""
    data_import: Import | None = None
    code: str = ""
    token: str = ""
    tensorboard: str = ""
    success: Success = Success()
    image_pull_policy: str = "IfNotPresent"
    max_restarts: int = 3
    worker_retries: int = 6
    timeout: int = 900
    total_timeout: int = 0
    start_timeout: int = 300
    login: Login | None = None

    @property
    def shape(self) -> Topology:
        return TOPOLOGIES[self.topology]

    @property
    def decider(self) -> Role:
        """The role whose first pod's exit is the run's."""
        return self.roles[self.shape.decider(self.roles)]

    @property
    def deciding(self) -> str:
        """The place of that pod, such as `chief-0`."""
        return f"{self.decider.name}-0"

    @property
    def probed(self) -> Role | None:
        """The role whose port a pod outside the run must not reach; None where none listens for certain."""
        return self.roles.get(self.shape.probed)

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports on which pods of the run listen."""
        return tuple(sorted({port for role in self.roles.values() if role.kind.member for port in role.ports}))

    @property
    def images(self) -> tuple[str, ...]:
        """References of everything that its pods pull."""
        volumes = [volume.image for role in self.roles.values() for volume in role.volumes]
        imports = [self.data_import.image, self.data_import.code] if self.data_import else []
        found = [*(role.image for role in self.roles.values()), self.data_image, self.code, *volumes, *imports]
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def says_its_end(self) -> bool:
        """Whether its exit code alone does not say that it succeeded: what a metric judges, and programs of ours, which
        say how many steps they did and how well they learned."""
        return bool(self.success.metric) or "train_steps" in self.flags

    @property
    def endless(self) -> bool:
        return self.flags.get("train_steps") == 0

    @property
    def size(self) -> str:
        """`200 steps, 1 ps, 2 worker`: what a run is, in a line."""
        steps = [f"{self.flags['train_steps']} steps"] if self.flags.get("train_steps") else []
        return ", ".join([*steps, *(f"{role.replicas} {name}" for name, role in self.roles.items())])
