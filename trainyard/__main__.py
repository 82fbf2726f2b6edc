"""`trainyard`, as `make env` installs it, and `python -m trainyard` from the checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    # Before Ansible is imported, which reads it then: the program may be called from any folder.
    os.environ.setdefault("ANSIBLE_CONFIG", str(ROOT / "ansible.cfg"))
    import ansible.module_utils

    ansible.module_utils.__path__.append(str(ROOT / "module_utils"))
    from trainyard.cli.main import main

    try:
        sys.exit(main(prog_name="trainyard"))
    except KeyboardInterrupt:
        # While a command is imported, or while Python ends.
        os._exit(130)
