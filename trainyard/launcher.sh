#!/bin/sh
# Installed as .venv/bin/trainyard by `make env`. The code is read from the checkout, as Ansible reads its own part of it.
bin=$(dirname "$(readlink -f "$0")")
exec "$bin/python" -I -c '
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("trainyard", run_name="__main__", alter_sys=True)' "$bin/../.." "$@"
