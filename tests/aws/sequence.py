"""Modules one after another, in a process that can be killed."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
from typing import Any

import boto3  # noqa: F401
from ansible.module_utils.testing import patch_module_args

from tests import one_name

one_name.install()

NAMES = ("efs_file_system", "efs_security_group", "efs_mount_target", "efs_access_point")
# Read before a process is forked: it takes longer than all that the modules do.
MODULES = {name: importlib.import_module(f"library.{name}") for name in NAMES}


def run(steps: list[dict[str, Any]], environment: dict[str, str]) -> None:
    """Run modules, each with `module`, `register` and `options`; an option `{{ x.y }}` is `y` of the registered `x`.

    :raises AssertionError: a module failed.
    """
    os.environ.update(environment)
    results: dict[str, Any] = {}
    for step in steps:
        output = io.StringIO()
        arguments = patch_module_args(filled(step["options"], results))
        with arguments, contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
            MODULES[step["module"]].main()
        result = json.loads(output.getvalue().splitlines()[-1])
        assert "msg" not in result, result
        results[step["register"]] = result[step["register"]]


def filled(value: Any, results: dict[str, Any]) -> Any:
    """A value with the results in it."""
    if isinstance(value, dict):
        return {key: filled(each, results) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, results) for each in value]
    if isinstance(value, str) and (found := re.fullmatch(r"\{\{ (\w+)\.(\w+) \}\}", value)):
        return results[found[1]][found[2]]
    return value
