"""One identity for the package in tests: modules in `library/` import it by the path that it has on hosts."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

SENT = "ansible.module_utils.trainyard"


class OneName(MetaPathFinder, Loader):
    """A finder of `ansible.module_utils.trainyard.X` as `trainyard.X`: an error class is the same under both names."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name == SENT or name.startswith(f"{SENT}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(spec.name.removeprefix("ansible.module_utils."))
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Python has set the spec of the other name.
        assert module.__spec__
        module.__spec__ = self._specs.pop(module.__spec__.name)


def install() -> None:
    """Install the finder in this process."""
    if not any(isinstance(each, OneName) for each in sys.meta_path):
        sys.meta_path.insert(0, OneName())
