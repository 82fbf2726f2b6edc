"""The program `trainyard`, as installed by `make env`."""

from __future__ import annotations

import os
import sys

from .project import ROOT

if __name__ == "__main__":
    # Set before Ansible is imported, because the program may be called from any folder.
    os.environ.setdefault("ANSIBLE_CONFIG", str(ROOT / "ansible.cfg"))
    from .cli.main import main

    try:
        sys.exit(main(prog_name="trainyard"))
    except KeyboardInterrupt:
        # Ctrl-C during the import of a command, or during Python's exit.
        os._exit(130)
