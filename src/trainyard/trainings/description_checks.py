"""Rules for the complete description of a training: its keys, their types, and their values.

Parts: the Ansible argument specification, with keys and types; the rules for the values, in addition to the types. The
rules report all faults, not only the first. `library/training.py` documents the same keys and types; a test compares
them.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .model import DATA_MOUNT
from .roles import ROLES, TOPOLOGIES, RoleKind

VOLUME: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "mount": {"type": "str", "required": True},
    "read_only": {"type": "bool", "default": True},
    "image": {"type": "str"},
    "claim": {"type": "str"},
    "path": {"type": "str"},
}

ROLE: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "replicas": {"type": "int"},
    "image": {"type": "str", "required": True},
    "command": {"type": "list", "elements": "str", "default": []},
    "args": {"type": "list", "elements": "str", "default": []},
    "entrypoint": {"type": "bool", "default": False},
    "limits": {"type": "dict", "default": {}},
    "requests": {"type": "dict", "default": {}},
    "gpus": {"type": "int", "default": 0},
    "cuda": {"type": "str"},
    "port": {"type": "int", "default": 2222},
    "node_selector": {"type": "dict", "default": {}},
    "tolerations": {"type": "list", "elements": "dict", "default": []},
    "spread": {"type": "bool", "default": True},
    "shm": {"type": "str"},
    "priority": {"type": "str"},
    "env": {"type": "dict", "default": {}},
    "volumes": {"type": "list", "elements": "dict", "default": [], "options": VOLUME},
    "grace": {"type": "int"},
}

DATA: dict[str, Any] = {
    "image": {"type": "str"},
    "claim": {"type": "str"},
    "folder": {"type": "str"},
    "mount": {"type": "str"},
    "url": {"type": "str"},
    "sha256": {"type": "str"},
    "runtime": {"type": "str"},
    "code": {"type": "str"},
    "authority": {"type": "str"},
}

TRAINING: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "workload": {"type": "str", "required": True},
    "description_hash": {"type": "str", "default": ""},
    "program": {"type": "str", "default": ""},
    "named": {"type": "bool", "default": True},
    "topology": {"type": "str", "choices": list(TOPOLOGIES), "default": "parameter_server"},
    "namespace": {"type": "str", "default": "trainings"},
    "roles": {"type": "list", "elements": "dict", "required": True, "options": ROLE},
    "flags": {"type": "dict", "default": {}},
    "data": {"type": "dict", "options": DATA},
    "code": {"type": "str"},
    "token": {"type": "str"},
    "tensorboard": {"type": "str"},
    "logs": {
        "type": "dict",
        "required": True,
        "options": {
            "size": {"type": "str", "default": "1Gi"},
            "node": {"type": "str", "default": ""},
            "path": {"type": "str", "default": ""},
            "storage_class": {"type": "str", "default": ""},
            "claim": {"type": "str", "default": ""},
        },
    },
    "success": {"type": "raw", "default": "exit_code"},
    "image_pull_policy": {"type": "str", "choices": ["IfNotPresent", "Always", "Never"], "default": "IfNotPresent"},
    "max_restarts": {"type": "int", "default": 3},
    "worker_retries": {"type": "int", "default": 6},
    "timeout": {"type": "int", "default": 0},
    "total_timeout": {"type": "int", "default": 0},
    "start_timeout": {"type": "int", "default": 300},
}

FLAGS: dict[str, Any] = {
    "train_steps": {"type": "int"},
    "batch_size": {"type": "int"},
    "learning_rate": {"type": "float"},
    "accuracy_bound": {"type": "float"},
    "checkpoint_every": {"type": "int"},
    "report_every": {"type": "int"},
    "stall_timeout": {"type": "float"},
}
"""Flags that have the same meaning for every training. Others pass unchecked."""


@dataclass(frozen=True)
class Fault:
    """One fault of a description.

    :param key: place in the description, such as `worker.limits.cpu`; empty if Ansible's own message names it.
    :param shown: the value in words, such as `is 80`; never a value of an environment.
    :param want: the requirement for the value.
    :param near: the key that was probably meant; empty if none is similar.
    """

    key: str
    shown: str
    want: str
    near: str = ""

    def __str__(self) -> str:
        hint = f" Did you mean {self.near}?" if self.near else ""
        return f"{self.key} {self.shown}: {self.want}.{hint}".strip()


def fault(key: str, value: Any, want: str, near: str = "") -> Fault:
    return Fault(key, "is missing" if value is None else f"is {value!r}", want, near)


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the known name that was probably meant; empty if none is similar."""
    return next(iter(difflib.get_close_matches(name, known, 1)), "")


def validated(data: Mapping[str, Any], spec: Mapping[str, Any], place: str = "") -> tuple[dict[str, Any], list[Fault]]:
    """Convert values to the types of an argument specification, add defaults, and return them with all faults.

    :param place: owner of the keys, such as `worker`.
    """
    prefix = f"{place}." if place else ""
    faults = []
    for key in sorted(data.keys() - spec.keys(), key=str):
        known = sorted(spec)
        near = nearest(str(key), known)
        # Mappings and lists are not shown: an unknown key may be a misspelt environment.
        shown = "is set" if isinstance(data[key], dict | list) else f"is {data[key]!r}"
        faults.append(Fault(f"{prefix}{key}", shown, f"known keys are {', '.join(known)}", near))
    # None means not given: templates of a site leave keys out in this way.
    known_data = {key: value for key, value in data.items() if key in spec and value is not None}
    result = ArgumentSpecValidator(spec).validate(known_data)
    faults += [
        Fault(place or "training", "is invalid", message.strip().rstrip(".")) for message in result.error_messages
    ]
    return dict(result.validated_parameters), faults


NAME_LENGTH = 40
"""Maximum length of a name: a pod is called NAME-worker-0-NNN-xxxxx, within the 63 characters of a DNS label."""

OWN_MOUNTS = ("/tmp", DATA_MOUNT, "/logs", "/opt/trainyard/code", "/dev/shm")
"""Mount paths that every pod uses itself."""

OF_ENGINE = ("parameter_server", "single")
"""Topologies of the engine's workloads. A user's program may also have `single`, but no `train_steps`."""

Check = tuple[Callable[[Any], bool], str]
"""Predicate of a valid value, and its description."""

_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_TAKEN = re.compile(rf"default-deny|.+-(import|stranger|({'|'.join(ROLES)})-[0-9]+)")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|[KMGT]i?|k)?")
_BYTES = re.compile(r"[0-9]+(\.[0-9]+)?([KMGT]i?)?")
_CPUS = re.compile(r"[0-9]+m|[0-9]+(\.[0-9]+)?")
_WHOLE = re.compile(r"[0-9]+")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
QUANTITIES = {"cpu": _CPUS, "memory": _BYTES}


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _label(value: Any) -> bool:
    return isinstance(value, str) and bool(_DNS_LABEL.fullmatch(value))


def _from(least: int) -> Callable[[Any], bool]:
    return lambda value: _whole(value) and value >= least


FLAG_CHECKS: Mapping[str, Check] = {
    "train_steps": (_from(0), "a whole number, 0 = until stopped"),
    "batch_size": (_from(1), "a whole number from 1"),
    "learning_rate": (lambda value: _number(value) and 0 < value <= 10, "a number above 0, at most 10"),
    "accuracy_bound": (lambda value: _number(value) and 0 <= value <= 1, "a fraction from 0 (no bound) to 1"),
    "checkpoint_every": (_from(0), "a whole number of steps, 0 = never"),
    "report_every": (_from(1), "a whole number of steps from 1"),
    "stall_timeout": (lambda value: _number(value) and value >= 1, "seconds from 1"),
}

_TRAINING: Mapping[str, Check] = {
    "name": (
        lambda value: _label(value) and len(value) <= NAME_LENGTH,
        f"a lower-case DNS label of at most {NAME_LENGTH} characters that begins with a letter",
    ),
    # These names belong to objects of other runs (import, isolation probe, Jobs of roles) or to the namespace's policy.
    "run": (
        lambda value: not _TAKEN.fullmatch(value),
        "another name: default-deny, and names that end with -import, -stranger or a role and a number, are "
        "reserved for other objects",
    ),
    "namespace": (_label, "a lower-case DNS label"),
    "max_restarts": (_from(0), "a whole number from 0"),
    "worker_retries": (_from(0), "a whole number from 0"),
    "timeout": (_from(0), "whole seconds, 0 = unlimited"),
    "total_timeout": (_from(0), "whole seconds, 0 = unlimited"),
    "start_timeout": (_from(1), "whole seconds from 1"),
}

_ROLE: Mapping[str, Check] = {
    "image": (bool, "an image reference"),
    "gpus": (_from(0), "a whole number from 0"),
    "cuda": (lambda value: not value or bool(_VERSION.fullmatch(value)), "a version such as 12.9"),
    "port": (
        lambda value: _whole(value) and 1024 <= value <= 65534,
        "a port from 1024 to 65534 (the next one is also used)",
    ),
    "shm": (lambda value: not value or bool(_BYTES.fullmatch(value)), "a quantity such as 512Mi"),
    "grace": (lambda value: value is None or _from(0)(value), "whole seconds from 0"),
}


def _refused(values: Mapping[str, Any], checks: Mapping[str, Check], place: str = "") -> Iterator[Fault]:
    for key, (good, want) in checks.items():
        if key in values and not good(values[key]):
            yield fault(f"{place}{key}", values[key], f"it must be {want}")


def flag_faults(flags: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of the flags that have the same meaning for every training."""
    found = list(_refused(flags, FLAG_CHECKS))
    if not found and flags.get("train_steps") == 0 and flags.get("accuracy_bound"):
        want = "a training without an end (train_steps 0) is never compared with it; set a number of train_steps, or 0"
        found = [fault("accuracy_bound", flags["accuracy_bound"], want)]
    return found


def role_faults(
    name: str, kind: RoleKind, replicas: int, limits: Mapping[str, str], known: Mapping[str, Any]
) -> list[Fault]:
    """Return the faults of a role.

    :param limits: its limits, including GPUs.
    :param known: its values, converted to their types.
    """
    found = list(_refused(known, _ROLE, f"{name}."))
    if not known["command"] and not known["entrypoint"]:
        found.append(fault(f"{name}.command", None, "a program and its arguments; only an own image has an ENTRYPOINT"))
    least, most = kind.replicas[0], kind.replicas[-1]
    if replicas not in kind.replicas:
        span = f"{least}" if least == most else f"a whole number from {least} to {most}"
        found.append(fault(f"{name}.replicas", replicas, f"it must be {span}"))
    for part, values in (("limits", limits), ("requests", known["requests"])):
        for resource, value in values.items():
            # Extended resources, including GPUs, are whole numbers.
            extended = "/" in resource
            form = _WHOLE if extended else QUANTITIES.get(resource, _QUANTITY)
            if value in (None, "", "None") or not form.fullmatch(str(value)):
                want = "a whole number" if extended else "a quantity such as 500m, 2 or 1Gi"
                found.append(fault(f"{name}.{part}.{resource}", value, f"it must be {want}"))
    found += [
        fault(f"{name}.limits.{resource}", None, "a quantity such as 500m, 2 or 1Gi is needed")
        for resource in QUANTITIES
        if resource not in limits
    ]
    return found + list(_env_faults(name, known["env"])) + list(_volume_faults(name, known["volumes"]))


def _env_faults(role: str, env: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of an environment. Values are not shown, because they may be secrets."""
    for name, value in env.items():
        place = f"{role}.env.{name}"
        if not _ENV_NAME.fullmatch(str(name)):
            yield Fault(place, "is not a valid name", "letters, digits and underscores, not a digit first")
        if isinstance(value, Mapping) and (value.keys() != {"secret", "key"} or not all(value.values())):
            yield Fault(place, f"has {', '.join(map(str, value)) or 'nothing'}", "a reference has secret and key")
        elif isinstance(value, list | tuple):
            yield Fault(place, "is a list", "it must be a value, or a reference {secret, key}")


def _volume_faults(role: str, volumes: list[Mapping[str, Any]]) -> Iterator[Fault]:
    mounts: set[str] = set()
    for volume in volumes:
        place = f"{role}.volumes.{volume['name']}"
        mount = PurePosixPath(volume["mount"])
        if not _label(volume["name"]) or volume["name"] in ("tmp", "data", "logs", "code", "shm"):
            yield Fault(place, "is not a valid name", "a lower-case DNS label, and not tmp, data, logs, code or shm")
        if sum(bool(volume.get(source)) for source in ("image", "claim", "path")) != 1:
            yield Fault(place, "has no source, or several", "exactly one of image, claim and path is needed")
        if not mount.is_absolute() or ".." in mount.parts or str(mount) == "/":
            yield fault(f"{place}.mount", volume["mount"], "it must be an absolute path")
        if str(mount) in mounts or any(mount.is_relative_to(own) for own in OWN_MOUNTS):
            yield fault(f"{place}.mount", volume["mount"], f"the path is in use; {', '.join(OWN_MOUNTS)} are reserved")
        path = PurePosixPath(volume.get("path") or "/x")
        if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
            yield fault(f"{place}.path", volume["path"], "it must be the absolute path of a folder on the nodes")
        if volume.get("image") and not volume["read_only"]:
            yield fault(f"{place}.read_only", False, "an image cannot be written")
        mounts.add(str(mount))


def _engine_faults(topology: str, flags: Mapping[str, Any], roles: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a fault for each role of the engine with GPUs that it would hold and never use."""
    if topology in OF_ENGINE and "train_steps" in flags:
        for name, role in roles.items():
            if role.gpus > 1:
                want = (
                    "a process of the engine computes on one GPU; set gpus to 1, and more workers for more of them, or "
                    "run a program of your own (workload: own)"
                )
                yield fault(f"{name}.gpus", role.gpus, want)


def _is_bound(success: Any) -> bool:
    """Return whether a condition of success has a metric and at least one bound, and nothing else."""
    if not isinstance(success, Mapping) or not isinstance(success.get("metric"), str) or not success["metric"]:
        return False
    bounds = success.keys() - {"metric"}
    return bool(bounds) and bounds <= {"at_least", "at_most"} and all(_number(success[each]) for each in bounds)


def training_faults(known: Mapping[str, Any], flags: Mapping[str, Any], roles: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of a training as a whole, whose roles are valid.

    :param roles: the roles that have pods.
    """
    found = list(_refused({**known, "run": known["name"]}, _TRAINING))
    logs = known["logs"]
    if logs["claim"] and (logs["node"] or logs["path"] or logs["storage_class"]):
        found.append(fault("logs.claim", logs["claim"], "with it, node, path and storage_class must be empty"))
    if bool(logs["node"]) != bool(logs["path"]):
        found.append(fault("logs.path", logs["path"], "node and path must be given together, or both left empty"))
    if logs["path"] and not logs["path"].startswith("/"):
        found.append(fault("logs.path", logs["path"], "it must be an absolute path on the node"))
    for name, role in roles.items():
        if role.kind.shares and not logs["claim"]:
            want = "it reads files that other roles write, which needs shared storage (storage_backend)"
            found.append(fault(f"{name}.replicas", role.replicas, want))
    found += _engine_faults(known["topology"], flags, roles)
    if mount := (known.get("data") or {}).get("mount"):
        for name, role in roles.items():
            if any(PurePosixPath(mount) == PurePosixPath(volume.mount) for volume in role.volumes):
                found.append(fault("data.mount", mount, f"a volume of {name} has the same path"))
    token, service = known.get("token"), "server" in roles
    if service and not (token and _ENV_NAME.fullmatch(token)):
        found.append(
            Fault(
                "token", "is not a valid name" if token else "is missing", "a service gets its token in this variable"
            )
        )
    if token and not service:
        found.append(Fault("token", "is set", "only a service has a token"))
    success = known["success"]
    if success != "exit_code" and not _is_bound(success):
        want = "it must be exit_code, or a metric with its bounds: at_least, at_most or both"
        found.append(fault("success", success, want))
    if success != "exit_code" and not found and flags.get("train_steps") == 0:
        found.append(fault("success", success, "a training without an end (train_steps 0) is never compared with it"))
    return found
