"""`trainyard`, as `make env` installs it."""

from __future__ import annotations

import os
import sys

from .project import ROOT

if __name__ == "__main__":
    # Before Ansible is imported, which reads it then: the program may be called from any folder.
    os.environ.setdefault("ANSIBLE_CONFIG", str(ROOT / "ansible.cfg"))
    from .cli.main import main

    try:
        sys.exit(main(prog_name="trainyard"))
    except KeyboardInterrupt:
        # While a command is imported, or while Python ends.
        os._exit(130)
