"""Runs modules one after another in one process that can be killed: `python -m tests.aws.sequence FILE`.

The file is a list of `{module, register, options}`; an option `{{ x.y }}` is `y` of what was registered as `x`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible.module_utils.testing import patch_module_args

ROOT = Path(__file__).resolve().parents[2]


def filled(value: Any, results: dict[str, Any]) -> Any:
    """A value with the results in it."""
    if isinstance(value, dict):
        return {key: filled(each, results) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, results) for each in value]
    if isinstance(value, str) and (found := re.fullmatch(r"\{\{ (\w+)\.(\w+) \}\}", value)):
        return results[found[1]][found[2]]
    return value


def main() -> None:
    ansible.module_utils.__path__.append(str(ROOT / "module_utils"))
    results: dict[str, Any] = {}
    for step in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        module = importlib.import_module(f"library.{step['module']}")
        output = io.StringIO()
        arguments = patch_module_args(filled(step["options"], results))
        with arguments, contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
            module.main()
        result = json.loads(output.getvalue().splitlines()[-1])
        assert "msg" not in result, result
        results[step["register"]] = result[step["register"]]


if __name__ == "__main__":
    main()
