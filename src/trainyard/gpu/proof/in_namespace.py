"""Run the device plugin and the stand-in for the kubelet in a mount namespace. A program of its own, for `unshare`.

    unshare --mount python3 -I in_namespace.py PROGRAMS SOCKET CDI COVERED...

It mounts an empty file system on each COVERED folder, and prints the stand-in's report and the plugin's CDI files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEP_TIMEOUT = 10
"""Seconds for a mount, for the stand-in to listen, and for the plugin to end."""
PLUGIN_TIMEOUT = 60
"""Seconds until the plugin has registered, listed its GPUs and allocated one."""
OUTPUT_LIMIT = 4_000
"""Bytes of the plugin's log in an error."""


def main(programs: Path, socket: Path, cdi: Path, covered: list[str]) -> int:
    """Return the exit status: 1 if the plugin offered nothing; its log is then on standard error."""
    for each in covered:
        argv = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", each]
        subprocess.run(argv, timeout=STEP_TIMEOUT, check=True)
    for folder in (socket.parent, cdi):
        folder.mkdir(parents=True, exist_ok=True)
    argv = [str(programs / "kubelet-standin"), f"--socket={socket}", f"--timeout={PLUGIN_TIMEOUT}s"]
    standin = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + STEP_TIMEOUT
    while not socket.exists() and standin.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    argv = [str(programs / "nvidia-device-plugin"), "--device-list-strategy=cdi-cri", "--fail-on-init-error=true"]
    argv += [
        "--nvidia-driver-root=/",
        "--driver-root-ctr-path=/",
        f"--nvidia-cdi-hook-path={programs / 'nvidia-cdi-hook'}",
    ]
    with tempfile.TemporaryFile() as log:
        plugin = subprocess.Popen(argv, stdout=log, stderr=log)
        try:
            output, errors = _until_the_first_ends(standin, plugin)
            described = [json.loads(each.read_bytes()) for each in sorted(cdi.glob("*.json"))]
        finally:
            plugin.terminate()
            standin.kill()
            plugin.wait(STEP_TIMEOUT)
        if standin.returncode:
            log.seek(0)
            text = errors + b"\n" + log.read()[-OUTPUT_LIMIT:]
            sys.stderr.write(text.decode(errors="replace"))
            return 1
    print(json.dumps({"report": json.loads(output), "described": described}))
    return 0


def _until_the_first_ends(standin: subprocess.Popen[bytes], plugin: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return the stand-in's output and errors. A plugin that ends early will not register, so its end ends both."""
    deadline = time.monotonic() + PLUGIN_TIMEOUT + STEP_TIMEOUT
    while standin.poll() is None and plugin.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if standin.poll() is None:
        standin.kill()
    return standin.communicate(timeout=STEP_TIMEOUT)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
