"""Tests that each plugin can be imported as Ansible does it: alone, with only the paths that its own file adds."""

from __future__ import annotations

import subprocess
import sys

from checkout import ROOT

IMPORT_EACH = """
import importlib.util, os, sys, traceback
import ansible.module_utils, ansible.plugins.action, ansible.plugins.lookup, ansible.plugins.loader
failed = []
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            spec = importlib.util.spec_from_file_location("plugin", path)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(path)
sys.exit(f"not imported: {failed}" if failed else 0)
"""


def test_each_plugin_is_imported_alone() -> None:
    """Ansible ignores a filter whose import fails, until a template uses it."""
    plugins = [str(path) for path in sorted(ROOT.glob("plugins/*/*.py"))]
    command = [sys.executable, "-I", "-c", IMPORT_EACH, *plugins]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=120, check=False)
    assert plugins and done.returncode == 0, done.stderr
