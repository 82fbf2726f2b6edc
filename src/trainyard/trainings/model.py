"""Data model of a training. `spec` creates it from a description and checks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .names import GPU
from .roles import TOPOLOGIES, RoleKind, Topology


@dataclass(frozen=True)
class Volume:
    """A mount of a role. Exactly one source is set: an image, a claim, or a folder that exists on every node."""

    name: str
    mount: str
    read_only: bool = True
    image: str = ""
    claim: str = ""
    path: str = ""


@dataclass(frozen=True)
class Role:
    """One role of a training: the number of its pods and their specification.

    :param limits: quantities of `cpu`, `memory` and extended resources.
    :param requests: quantities that the scheduler reserves; for resources not named here, the limits.
    :param command: the program and its arguments; empty for the ENTRYPOINT of the image.
    :param args: arguments after it.
    :param env: name -> value, or `{secret, key}`.
    :param cuda: CUDA version of the image, to refuse nodes whose driver is too old; empty if unknown or irrelevant.
    :param shm: size of the shared memory; empty for the container runtime's default of 64 MiB.
    :param grace: seconds from SIGTERM to SIGKILL.
    """

    name: str
    kind: RoleKind
    replicas: int
    image: str
    command: tuple[str, ...]
    limits: Mapping[str, str]
    requests: Mapping[str, str]
    args: tuple[str, ...] = ()
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
        """GPUs of each pod."""
        return int(self.limits.get(GPU, "0"))

    @property
    def ports(self) -> tuple[int, ...]:
        """TensorFlow's port, and the next one if the other roles call this role."""
        return (self.port, self.port + 1) if self.kind.called else (self.port,)


@dataclass(frozen=True)
class Logs:
    """Storage for the metrics, events and checkpoints of a run.

    :param size: quantity that the claim requests.
    :param node: name of the node that holds `path`; empty if a storage class provides the volume.
    :param path: folder on that node, created by the role.
    :param storage_class: class of the claim if there is no `path`; empty for the cluster's default class.
    :param claim: an existing shared claim, on which every run has a folder of its name. Excludes the options above.
    """

    size: str
    node: str = ""
    path: str = ""
    storage_class: str = ""
    claim: str = ""


@dataclass(frozen=True)
class Login:
    """Credentials with which the nodes pull from one registry.

    :param registry: host, and port if there is one, as in image references. No other registry receives the login.
    """

    registry: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Import:
    """An archive that is imported onto the data claim of a training before it is submitted.

    :param url: http or https address of the archive.
    :param sha256: expected digest of the archive; another one is refused.
    :param image: image with the Python that downloads and unpacks it.
    :param code: image with the import program.
    :param authority: certificate authority of its server, as PEM; empty for the public ones.
    """

    url: str
    sha256: str
    image: str
    code: str
    authority: str = ""


@dataclass(frozen=True)
class Success:
    """Condition of success: exit code 0 alone (no metric), or exit code 0 and the last value of a metric in its bounds.

    :param at_least: smallest value that counts; None for no such bound. `at_most`: the largest, as for a loss.
    """

    metric: str = ""
    at_least: float | None = None
    at_most: float | None = None

    def holds(self, value: float) -> bool:
        """Return whether a value is within the bounds. NaN is in none."""
        low, high = self.at_least, self.at_most
        return (low is None or value >= low) and (high is None or value <= high) and value == value

    def missed(self, values: Sequence[float]) -> str:
        """Return how the values of a run miss the bounds: `loss is 0.31, but at most 0.2 is required`."""
        bounds = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        bounds += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return f"{self.metric} is {values[-1] if values else 'unknown'}, but {' and '.join(bounds)} is required"


DATA_MOUNT = "/data"
"""Default path of a run's data in its pods."""


@dataclass(frozen=True)
class Training:
    """One run of a training.

    :param workload: its catalogue entry.
    :param description_hash: hash of the site's description, which a verdict compares with the record; empty if unknown.
    :param program: SHA-256 of the path of its code folder and its commands; empty if it has no code folder.
    :param named: whether the site names the run. Otherwise its code folder does, and another folder may have that name.
    :param roles: roles that have pods, in the order of the topology.
    :param flags: passed to every role as `--key=value`, in the order of the mapping. A program without flags is
        configured by its environment alone.
    :param data_image: OCI image mounted read-only.
    :param data_claim: claim mounted read-only, instead of an image; both empty for none.
    :param data_folder: folder of that claim to mount; empty for all of it.
    :param data_mount: path of the data in the pods.
    :param data_import: archive that must be in that folder before the training starts; None for existing data.
    :param code: OCI image mounted read-only, first in Python's path; empty for none.
    :param token: environment variable in which a service receives its access token; empty for none.
    :param tensorboard: image of the TensorBoard for the claim with its files; empty for none.
    :param timeout: seconds for one attempt, after which the run fails; 0 = unlimited.
    :param total_timeout: seconds for all attempts together; 0 = unlimited. Enforced only while the run is followed.
    :param start_timeout: seconds within which every pod must run, in every attempt.
    :param worker_retries: pod failures that are restarted in place; further ones restart the whole set.
    :param login: None if the nodes can pull without one.
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
    data_mount: str = DATA_MOUNT
    data_import: Import | None = None
    code: str = ""
    token: str = ""
    tensorboard: str = ""
    success: Success = Success()
    image_pull_policy: str = "IfNotPresent"
    max_restarts: int = 3
    worker_retries: int = 6
    timeout: int = 0
    total_timeout: int = 0
    start_timeout: int = 300
    login: Login | None = None

    @property
    def shape(self) -> Topology:
        return TOPOLOGIES[self.topology]

    @property
    def decider(self) -> Role:
        """The role whose first pod decides the result of the run by its exit."""
        return self.roles[self.shape.decider(self.roles)]

    @property
    def deciding(self) -> str:
        """The place of the deciding pod, such as `chief-0`."""
        return f"{self.decider.name}-0"

    @property
    def probed(self) -> Role | None:
        """The role whose port a pod outside the run must not reach; None if no port is certain to be in use."""
        return self.roles.get(self.shape.probed)

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports on which pods of the run listen."""
        return tuple(sorted({port for role in self.roles.values() if role.kind.member for port in role.ports}))

    @property
    def images(self) -> tuple[str, ...]:
        """References of all images that its pods pull."""
        volumes = [volume.image for role in self.roles.values() for volume in role.volumes]
        imports = [self.data_import.image, self.data_import.code] if self.data_import else []
        found = [*(role.image for role in self.roles.values()), self.data_image, self.code, *volumes, *imports]
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def says_its_end(self) -> bool:
        """Return whether success needs evidence in the log in addition to exit code 0.

        This holds for a training with a metric, and for our own programs, which report their steps and accuracy.
        """
        return bool(self.success.metric) or "train_steps" in self.flags

    @property
    def endless(self) -> bool:
        return self.flags.get("train_steps") == 0

    @property
    def size(self) -> str:
        """The size of a run in one line: `200 steps, 1 ps, 2 worker`."""
        steps = [f"{self.flags['train_steps']} steps"] if self.flags.get("train_steps") else []
        return ", ".join([*steps, *(f"{role.replicas} {name}" for name, role in self.roles.items())])
