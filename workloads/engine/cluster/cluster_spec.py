"""Parse and validate TF_CONFIG before TensorFlow reads it: TensorFlow hangs on most mistakes in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import InputError

if TYPE_CHECKING:
    import tensorflow as tf

ROLES = ("chief", "ps", "worker", "evaluator")
SERVING_ROLES = ("chief", "ps", "worker")
"""Roles that are part of the TensorFlow cluster; an evaluator only reads checkpoints."""

_ADDRESS = re.compile(r"^(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})$")
_EXAMPLE = (
    'Example: {"cluster": {"chief": ["host0:2222"], "ps": ["host1:2222"], "worker": ["host2:2222"]}, '
    '"task": {"type": "worker", "index": 0}}.'
)


@dataclass(frozen=True)
class Cluster:
    """A validated TF_CONFIG.

    :param addresses: role -> addresses ("host:port") of its tasks, in the order of their indices.
    :param role: role of this process.
    :param index: index of this process within its role.
    """

    addresses: Mapping[str, tuple[str, ...]]
    role: str
    index: int

    @property
    def address(self) -> str:
        """Return the address of this process."""
        return self.addresses[self.role][self.index]

    def peers(self, *roles: str) -> dict[str, str]:
        """Return task name ("ps 0") -> address for the given roles."""
        return {
            f"{role} {index}": address for role in roles for index, address in enumerate(self.addresses.get(role, ()))
        }

    def tensorflow_spec(self) -> tf.train.ClusterSpec:
        """Return the cluster as TensorFlow's own type, without evaluators."""
        import tensorflow as tf

        return tf.train.ClusterSpec({role: list(self.addresses[role]) for role in SERVING_ROLES})


def parse(text: str | None) -> Cluster:
    """Parse TF_CONFIG for parameter-server training.

    :param text: value of the environment variable, None if it is not set.
    :raises InputError: it is missing or does not describe one chief, at least one ps and at least one worker.
    """
    if not text:
        raise InputError("The environment variable TF_CONFIG is not set.", _EXAMPLE)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"TF_CONFIG is not JSON ({error}).", _EXAMPLE) from error
    cluster = document.get("cluster") if isinstance(document, dict) else None
    if not isinstance(cluster, dict) or not cluster:
        raise InputError("TF_CONFIG has no object 'cluster'.", _EXAMPLE)
    addresses = _addresses(cluster)
    role, index = _task(document.get("task"), addresses)
    return Cluster(addresses, role, index)


def _addresses(cluster: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    addresses: dict[str, tuple[str, ...]] = {}
    seen: dict[str, str] = {}
    for role, members in cluster.items():
        if role not in ROLES:
            raise InputError(f"TF_CONFIG names the unknown role '{role}'.", f"Known roles: {', '.join(ROLES)}.")
        if not isinstance(members, list) or not members:
            raise InputError(f"TF_CONFIG: role '{role}' is not a non-empty list of addresses.", _EXAMPLE)
        for member in members:
            _check_address(role, member)
            if member in seen:
                raise InputError(
                    f"TF_CONFIG gives the address '{member}' to both {seen[member]} and {role}.",
                    "Give every task its own host or port.",
                )
            seen[member] = role
        addresses[role] = tuple(members)
    for role in SERVING_ROLES:
        if role not in addresses:
            raise InputError(
                f"TF_CONFIG has no task of role '{role}'.", "Set one chief and at least one ps and worker."
            )
    if len(addresses["chief"]) != 1:
        raise InputError(f"TF_CONFIG has {len(addresses['chief'])} chiefs.", "Set exactly one.")
    return addresses


def _check_address(role: str, member: object) -> None:
    match = _ADDRESS.match(member) if isinstance(member, str) else None
    # The chief also uses the port after its own.
    last = 65534 if role == "chief" else 65535
    if match is None or not 0 < int(match["port"]) <= last:
        raise InputError(f"TF_CONFIG: {role} address {member!r} is not 'host:port'.", f"Use a port from 1 to {last}.")


def _task(task: object, addresses: Mapping[str, tuple[str, ...]]) -> tuple[str, int]:
    if not isinstance(task, dict) or "type" not in task:
        raise InputError("TF_CONFIG has no object 'task' with a 'type'.", _EXAMPLE)
    role, index = task["type"], task.get("index", 0)
    if role == "evaluator" and role not in addresses:
        # As in TensorFlow, no task connects to an evaluator, so it needs no address.
        addresses = {**addresses, role: ("",)}
    if role not in addresses:
        raise InputError(
            f"TF_CONFIG: this task's type {role!r} is not in the cluster.", f"Use one of {sorted(addresses)}."
        )
    if isinstance(index, str) and index.isdigit():
        # An environment variable from the downward API is always a string.
        index = int(index)
    count = len(addresses[role])
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
        raise InputError(
            f"TF_CONFIG: index {index!r} of {role} is out of range.", f"There are {count}, counted from 0."
        )
    return role, index
