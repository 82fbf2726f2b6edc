"""What a distributed training is: the data model of `workloads_training`, checked before anything is touched."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import TrainyardError

VARIABLE = "workloads_training"
ROLES = ("chief", "ps", "worker")
NAME_LENGTH = 40
"""A pod is called NAME-worker-0-NNN-xxxxx and has to fit into the 63 characters of a DNS label."""

DESCRIPTIVE = ("workload", "strategy", "keras", "loop", "python")
"""Keys that say what a training is made of; the validation of the site reads them, the run does not."""


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


FLAG_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "train_steps": (lambda value: _whole(value) and value >= 0, "a whole number, 0 = until stopped"),
    "batch_size": (lambda value: _whole(value) and value >= 1, "a whole number from 1"),
    "learning_rate": (lambda value: _number(value) and 0 < value <= 10, "a number above 0, at most 10"),
    "accuracy_bound": (lambda value: _number(value) and 0 <= value <= 1, "a fraction from 0 (no bound) to 1"),
    "checkpoint_every": (lambda value: _whole(value) and value >= 0, "a whole number of steps, 0 = never"),
    "report_every": (lambda value: _whole(value) and value >= 1, "a whole number of steps from 1"),
    "stall_timeout": (lambda value: _number(value) and value >= 1, "seconds from 1"),
}
"""Flags that every training understands in the same way; others pass unchecked."""

_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUANTITY = {"cpu": re.compile(r"[0-9]+m|[0-9]+(\.[0-9]+)?"), "memory": re.compile(r"[0-9]+(\.[0-9]+)?([KMGT]i?)?")}


@dataclass(frozen=True)
class Role:
    """How many pods a role has and what each may use.

    :param limits: quantities of `cpu`, `memory` and extended resources.
    :param requests: what the scheduler sets aside; resources not named here are requested as limited.
    """

    replicas: int
    limits: Mapping[str, str]
    requests: Mapping[str, str]


@dataclass(frozen=True)
class Logs:
    """Where the chief keeps metrics, events and checkpoints.

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
    """With which the nodes pull the images of a training."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Training:
    """One run of a training.

    :param command: program and arguments before the flags.
    :param flags: passed to every role as `--key=value`, in the order of the mapping.
    :param data_image: OCI image mounted read-only at /data; empty for none.
    :param timeout: seconds for one attempt, after which the run is failed; 0 = unlimited.
    :param total_timeout: seconds for all attempts together; 0 = unlimited. Kept while somebody follows the run.
    :param start_timeout: seconds within which every pod must run, in every attempt.
    :param login: none where the nodes may pull without.
    :param worker_retries: failures of worker pods that are mended in place; more restart the whole set.
    """

    name: str
    namespace: str
    image: str
    command: tuple[str, ...]
    flags: Mapping[str, Any]
    roles: Mapping[str, Role]
    logs: Logs
    data_image: str = ""
    image_pull_policy: str = "IfNotPresent"
    port: int = 2222
    max_restarts: int = 3
    worker_retries: int = 6
    timeout: int = 900
    total_timeout: int = 0
    start_timeout: int = 300
    env: Mapping[str, str] = field(default_factory=dict)
    login: Login | None = None

    @property
    def ports(self) -> tuple[int, int]:
        """TensorFlow's port, and the chief's for the calls of the others, which is the next one."""
        return self.port, self.port + 1

    @property
    def endless(self) -> bool:
        return self.flags.get("train_steps") == 0


_PLAIN: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "name": (
        lambda value: _text(value) and bool(_DNS_LABEL.fullmatch(value)) and len(value) <= NAME_LENGTH,
        f"a lower-case DNS label of at most {NAME_LENGTH} characters that begins with a letter",
    ),
    "namespace": (lambda value: _text(value) and bool(_DNS_LABEL.fullmatch(value)), "a lower-case DNS label"),
    "image": (lambda value: _text(value) and bool(value), "an image reference"),
    "data_image": (_text, "an image reference, or empty"),
    "image_pull_policy": (lambda value: value in ("IfNotPresent", "Always", "Never"), "IfNotPresent, Always or Never"),
    "port": (
        lambda value: _whole(value) and 1024 <= value <= 65534,
        "a port from 1024 to 65534 (the chief uses the next one, too)",
    ),
    "max_restarts": (lambda value: _whole(value) and value >= 0, "a whole number from 0"),
    "worker_retries": (lambda value: _whole(value) and value >= 0, "a whole number from 0"),
    "timeout": (lambda value: _whole(value) and value >= 0, "whole seconds, 0 = unlimited"),
    "total_timeout": (lambda value: _whole(value) and value >= 0, "whole seconds, 0 = unlimited"),
    "start_timeout": (lambda value: _whole(value) and value >= 1, "whole seconds from 1"),
}


def parse_training(data: Mapping[str, Any], login: Login | None = None) -> Training:
    """The training that a mapping describes.

    :param data: keys of `Training`, with the roles by their names and the flags by theirs; `flags` lists which keys are
        flags, `command` is a list.
    :param login: comes apart from the description, which may be shown.
    :raises TrainyardError: an unknown key, a missing or impossible value; names the variable, the value, the remedy.
    """
    flag_names = list(data.get("flags", FLAG_CHECKS))
    known = {*_PLAIN, *ROLES, *DESCRIPTIVE, *flag_names, "command", "flags", "logs", "env"}
    for key in data:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise _bad(key, data[key], f"known keys are {', '.join(sorted(known))}", near[0] if near else "")
    for key in ("name", "namespace", "image", "command", "logs", *ROLES):
        if key not in data:
            raise _bad(key, None, "a value is needed")
    for key, (good, want) in {**_PLAIN, **FLAG_CHECKS}.items():
        if key in data and not good(data[key]):
            raise _bad(key, data[key], f"it must be {want}")
    if data.get("train_steps") == 0 and data.get("accuracy_bound"):
        raise _bad("accuracy_bound", data["accuracy_bound"], "it must be 0 where train_steps is 0 (no end)")
    roles = {name: _role(name, data[name]) for name in ROLES}
    if roles["chief"].replicas != 1:
        raise _bad("chief.replicas", roles["chief"].replicas, "it must be 1")
    return Training(
        command=tuple(str(part) for part in data["command"]),
        flags={name: data[name] for name in flag_names if name in data},
        roles=roles,
        logs=_logs(data["logs"]),
        env={str(key): str(value) for key, value in (data.get("env") or {}).items()},
        login=login,
        **{key: data[key] for key in _PLAIN if key in data},
    )


def _role(name: str, data: Mapping[str, Any]) -> Role:
    for key in data:
        if key not in ("replicas", "limits", "requests"):
            raise _bad(f"{name}.{key}", data[key], "known keys are replicas, limits, requests")
    replicas = data.get("replicas", 1)
    if not (_whole(replicas) and 1 <= replicas <= 999):
        raise _bad(f"{name}.replicas", replicas, "it must be a whole number from 1 to 999")
    limits = {key: str(value) for key, value in (data.get("limits") or {}).items()}
    requests = {**limits, **{key: str(value) for key, value in (data.get("requests") or {}).items()}}
    for part, values in (("limits", limits), ("requests", requests)):
        for resource, value in values.items():
            if resource in _QUANTITY and not _QUANTITY[resource].fullmatch(value):
                raise _bad(f"{name}.{part}.{resource}", value, "it must be a quantity such as 500m, 2 or 1Gi")
    for resource in ("cpu", "memory"):
        if resource not in limits:
            raise _bad(f"{name}.limits.{resource}", None, "a quantity such as 500m, 2 or 1Gi is needed")
    return Role(replicas, limits, requests)


def _logs(data: Mapping[str, Any]) -> Logs:
    for key in data:
        if key not in ("size", "node", "path", "storage_class", "claim"):
            raise _bad(f"logs.{key}", data[key], "known keys are size, node, path, storage_class, claim")
    logs = Logs(**{"size": "1Gi", **data})
    if logs.claim and (logs.node or logs.path or logs.storage_class):
        raise _bad("logs.claim", logs.claim, "node, path and storage_class must be empty beside it")
    if bool(logs.node) != bool(logs.path):
        raise _bad("logs.path", logs.path, "node and path must be given together, or both left empty")
    if logs.path and not logs.path.startswith("/"):
        raise _bad("logs.path", logs.path, "it must be an absolute path on the node")
    return logs


def _bad(key: str, value: Any, want: str, near: str = "") -> TrainyardError:
    hint = f"Did you mean {near}? " if near else ""
    shown = "is missing" if value is None else f"is {value!r}"
    remedy = f"{hint}Set it in {VARIABLE}."
    return TrainyardError(f"{VARIABLE}.{key} {shown}: {want}.", remedy=remedy, variable=VARIABLE)
