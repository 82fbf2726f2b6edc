"""Conversion of a complete description to a training, with all checks before any change.

`description_checks` defines the keys of a description, their types and the allowed values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import TrainyardError
from .data_checks import data_faults
from .description_checks import (
    FLAGS,
    ROLE,
    TRAINING,
    Fault,
    fault,
    flag_faults,
    nearest,
    role_faults,
    training_faults,
    validated,
)
from .model import DATA_MOUNT, Import, Login, Logs, Role, Success, Training, Volume
from .names import GPU
from .roles import TOPOLOGIES, Topology

VARIABLE = "workloads_trainings"


def parse_training(data: Mapping[str, Any], login: Login | None = None) -> Training:
    """Return the training of a complete description.

    :param login: separate from the description, because a description may be shown.
    :raises TrainyardError: lists all faults.
    """
    training, faults = check(data, login)
    if training is None:
        name = data.get("name") or data.get("workload") or "?"
        lines = "".join(f"\n  - {each}" for each in faults)
        raise TrainyardError(
            f"The training {name} cannot be run; nothing was changed.{lines}\n",
            remedy=f"Change it in {VARIABLE}.",
            variable=VARIABLE,
        )
    return training


def check(data: Mapping[str, Any], login: Login | None = None) -> tuple[Training | None, list[Fault]]:
    """Return the training, or None and all faults of its description."""
    known, faults = validated(data, {**TRAINING, "roles": {"type": "list", "elements": "dict", "required": True}})
    flags, more = _flags(known.get("flags") or {})
    faults += more
    roles: dict[str, Role] = {}
    shape = TOPOLOGIES.get(known.get("topology", ""))
    found = known.get("roles")
    for described in found if shape and isinstance(found, list) else ():
        role, more = _role(described, shape) if shape else (None, [])
        faults += more
        if role:
            roles[role.name] = role
    if not faults and shape:
        missing = [name for name, kind in shape.roles.items() if kind.usual and name not in roles]
        faults += [
            fault(name, None, f"a training of the topology {known['topology']} needs this role") for name in missing
        ]
    if faults:
        return None, faults
    present = {name: roles[name] for name in (shape.roles if shape else ()) if name in roles and roles[name].replicas}
    success = known["success"]
    source = known.get("data") or {}
    faults = [*training_faults(known, flags, present), *data_faults(source)]
    if faults:
        return None, faults
    training = Training(
        roles=present,
        flags=flags,
        logs=Logs(**known["logs"]),
        data_image=source.get("image") or "",
        data_claim=source.get("claim") or "",
        data_folder=source.get("folder") or "",
        data_mount=source.get("mount") or DATA_MOUNT,
        data_import=_import(source),
        code=known.get("code") or "",
        token=known.get("token") or "",
        tensorboard=known.get("tensorboard") or "",
        success=_success(success) if isinstance(success, Mapping) else Success(),
        login=login,
        **{key: known[key] for key in _PLAIN},
    )
    return training, []


def _success(given: Mapping[str, Any]) -> Success:
    bounds = {each: float(given[each]) for each in ("at_least", "at_most") if each in given}
    return Success(str(given["metric"]), **bounds)


def _import(source: Mapping[str, Any]) -> Import | None:
    """Return the import that must precede the training; None without a URL."""
    if not source.get("url"):
        return None
    texts = {key: str(source.get(key) or "") for key in ("url", "code", "authority")}
    return Import(sha256=str(source["sha256"]).lower(), image=str(source.get("runtime") or ""), **texts)


_PLAIN = (
    *(
        "name",
        "workload",
        "description_hash",
        "program",
        "named",
        "namespace",
        "topology",
        "image_pull_policy",
        "max_restarts",
        "worker_retries",
    ),
    *("timeout", "total_timeout", "start_timeout"),
)


def _flags(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """Return the flags in their order, and the faults of those in `FLAGS`."""
    known, faults = validated({key: value for key, value in data.items() if key in FLAGS}, FLAGS)
    flags = {str(key): known.get(key, value) for key, value in data.items() if value is not None}
    return flags, faults or flag_faults(flags)


def _role(data: Mapping[str, Any], shape: Topology) -> tuple[Role | None, list[Fault]]:
    name = str(data.get("name"))
    if name not in shape.roles:
        names = list(shape.roles)
        return None, [fault(name, data.get("replicas", 1), f"roles are {', '.join(names)}", nearest(name, names))]
    kind = shape.roles[name]
    if data.get("replicas", kind.usual) == 0 and 0 in kind.replicas:
        return Role(name, kind, 0, "", (), {}, {}), []
    known, faults = validated(data, ROLE, name)
    if faults:
        return None, faults
    replicas = kind.usual if known["replicas"] is None else known["replicas"]
    limits = _texts(known["limits"])
    if known["gpus"]:
        limits[GPU] = str(known["gpus"])
    faults = role_faults(name, kind, replicas, limits, known)
    if faults:
        return None, faults
    role = Role(
        name=name,
        kind=kind,
        replicas=replicas,
        image=known["image"],
        command=tuple(known["command"]),
        args=tuple(known["args"]),
        limits=limits,
        requests={**limits, **_texts(known["requests"])},
        port=known["port"],
        node_selector=_texts(known["node_selector"]),
        tolerations=tuple(known["tolerations"]),
        spread=known["spread"],
        cuda=known["cuda"] or "",
        shm=known["shm"] or "",
        priority=known["priority"] or "",
        env=known["env"],
        volumes=tuple(_volume(each) for each in known["volumes"]),
        grace=kind.grace if known["grace"] is None else known["grace"],
    )
    return role, []


def _volume(known: Mapping[str, Any]) -> Volume:
    source = {key: known[key] or "" for key in ("image", "claim", "path")}
    return Volume(known["name"], known["mount"], known["read_only"], **source)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in values.items()}
