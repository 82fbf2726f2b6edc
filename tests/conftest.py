"""What every test gets: the project's module_utils under the import path that Ansible gives them at run time."""

from __future__ import annotations

from pathlib import Path

import ansible.module_utils
import pytest

ROOT = Path(__file__).resolve().parent.parent

ansible.module_utils.__path__.append(str(ROOT / "module_utils"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
