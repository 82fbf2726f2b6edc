"""The file of `train.yml -e run_file=FILE`: all keys of one run, so that it needs no entry in the inventory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import yaml

from ..core.errors import TrainyardError

LARGEST = 1 << 20
"""Most bytes of a file; a description has some hundred."""
MOST_VALUES = 10_000
"""Most values of a description. Aliases of YAML can name the same list a million times in some lines."""


def read_run(path: str) -> Mapping[str, Any]:
    """Return the description of a run, as an element of `workloads_trainings`.

    :param path: below `~`, or relative to the folder in which Ansible is called.
    :raises TrainyardError: the file cannot be read, is no YAML, or does not describe one run.
    """
    shown = f"The run_file {path}"
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            text = file.read(LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise TrainyardError(f"{shown} cannot be read: {reason}.", remedy="Set run_file to a YAML file.") from error
    if len(text) > LARGEST:
        raise TrainyardError(f"{shown} has more than 1 MiB.", remedy="Describe one run in it.")
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        where = f", line {place.line + 1}" if place else ""
        raise TrainyardError(f"{shown} is no YAML{where}.", remedy="Correct it.") from error
    if not isinstance(found, dict) or not found or not all(isinstance(key, str) for key in found):
        remedy = "Write its keys as a mapping, as in: {workload: own, command: python train.py}."
        raise TrainyardError(f"{shown} does not describe a run.", remedy=remedy)
    left, count = [found], 0
    while left:
        each = left.pop()
        left += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        count += 1
        if count > MOST_VALUES:
            raise TrainyardError(f"{shown} has more than {MOST_VALUES} values.", remedy="Describe one run in it.")
    return found
