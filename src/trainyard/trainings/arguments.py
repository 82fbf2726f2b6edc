"""Ansible argument specification of the complete description of a training: its keys and their types.

`library/training.py` documents the same; a test compares them. `checks` has the rules for the values.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .roles import TOPOLOGIES

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
    "command": {"type": "list", "elements": "str", "required": True},
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
    "timeout": {"type": "int", "default": 900},
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
