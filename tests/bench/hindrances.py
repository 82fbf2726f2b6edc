"""Disturbances of a converge: a cut network, a jumping clock, a hanging webhook, a full disk."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import cuts
from mishaps import until
from schedule_site import CONTROLLER, FOLDER, HANGING, WORKER
from schedule_stand import UNIT, Ended, Scheduled
from timed import BenchError

CUT_SECONDS = 60.0
JUMP_SECONDS = 7200
ROOM_BYTES = 24576
STATE = f"{FOLDER}/site"
LIBRARY, SHIFT = "/usr/local/lib/trainyard-clock.so", "/run/trainyard-clock"
DROPIN = f"/run/systemd/system/{UNIT}.d"
CLOCK = Path(__file__).with_name("clock.c")
"""A library that advances the clock of programs: a container shares its machine's clock, which must not jump."""
HANGS = f"""
import os, socket
with socket.create_server(("127.0.0.1", {HANGING})) as server, open("/run/hangs.pid", "w") as pid:
    pid.write(str(os.getpid()))
    pid.flush()
    kept = []
    while True:
        kept.append(server.accept())
"""
"""A server that accepts every connection and never answers."""
FULL = f"""
set -e
rm -rf /var/lib/kept; cp -a {STATE} /var/lib/kept
mount -t tmpfs -o size=64m,mode=0700,uid=$(stat -c %u {STATE}),gid=$(stat -c %g {STATE}) tmpfs {STATE}
cp -a /var/lib/kept/. {STATE}/
room=$(df --block-size=1 --output=avail {STATE} | tail -1)
head -c $((room - {ROOM_BYTES})) /dev/zero > {STATE}/filler
"""
ROOM = f"rm {STATE}/filler"
BACK = f"""
set -e
rm -rf /var/lib/kept; cp -a {STATE} /var/lib/kept
umount {STATE}
find {STATE} -mindepth 1 -delete
cp -a /var/lib/kept/. {STATE}/
rm -rf /var/lib/kept
"""


def drift(stand: Scheduled) -> None:
    """Break five things of the worker, in the same way each time.

    One is the file of host names, whose diff contains the secret.
    """
    script = """
    sysctl -q -w net.ipv4.ip_forward=0
    apt-mark unhold kubelet > /dev/null
    systemctl disable containerd 2> /dev/null
    rm -f /usr/local/share/ca-certificates/trainyard-site.crt
    kept=$(grep -v 192.0.2.9 /etc/hosts); echo "$kept" > /etc/hosts
    """
    stand.on_node(WORKER, "sh", "-c", script)


def must_work(stand: Scheduled) -> None:
    if not stand.works():
        raise BenchError("The converge had ended before it was disturbed.")


def network(stand: Scheduled) -> Ended:
    must_work(stand)
    cuts.plug(stand.lab, CONTROLLER, "down")
    try:
        time.sleep(CUT_SECONDS)
    finally:
        cuts.plug(stand.lab, CONTROLLER, "up")
    return stand.wait()


def shiftable(stand: Scheduled) -> None:
    """Make the service's programs use a shiftable clock, without a shift for now."""
    built = build(stand.folder / "clock.so", SHIFT)
    subprocess.run(["podman", "cp", str(built), f"{stand.lab}-{CONTROLLER}:{LIBRARY}"], check=True, timeout=60)
    shift(stand, 0)
    stand.on_node(CONTROLLER, "mkdir", "-p", DROPIN)
    stand.on_node(CONTROLLER, "tee", f"{DROPIN}/clock.conf", given=f"[Service]\nEnvironment=LD_PRELOAD={LIBRARY}\n")
    stand.on_node(CONTROLLER, "systemctl", "daemon-reload")


def build(library: Path, shift: str) -> Path:
    """Compile the library, which reads the seconds from the file `shift`."""
    named = f'-DSHIFT="{shift}"'
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", named, "-o", str(library), str(CLOCK), "-ldl"], check=True)
    return library


def shift(stand: Scheduled, seconds: int) -> None:
    stand.on_node(CONTROLLER, "tee", SHIFT, given=f"{seconds}\n")


def clock(stand: Scheduled) -> Ended:
    must_work(stand)
    shift(stand, JUMP_SECONDS)
    return stand.wait()


def right_again(stand: Scheduled) -> None:
    """Set the clock back by two hours: files of the disturbed run are now in the future."""
    last = max((each["ended"] or 0 for each in stand.look()["reports"] if each), default=0)
    if last < time.time() + JUMP_SECONDS / 2:
        raise BenchError("The clock has not jumped, so nothing was tested.")
    stand.on_node(CONTROLLER, "rm", "-r", DROPIN, LIBRARY, SHIFT)
    stand.on_node(CONTROLLER, "systemctl", "daemon-reload")


def hang(stand: Scheduled) -> None:
    """Start a server for the webhook that never answers; the next run will change the last state."""
    command = ["podman", "exec", "--detach", f"{stand.lab}-{CONTROLLER}", "python3", "-c", HANGS]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    until("the hanging server", lambda: stand.on_node(CONTROLLER, "sh", "-c", "cat /run/hangs.pid || true"), 30)


def hung(stand: Scheduled) -> Ended:
    """Run a report whose drift is a change of state."""
    stand.wait()
    drift(stand)
    ended = stand.run("report")
    told = [note for each in stand.look()["reports"] if each for note in each["notes"]]
    if not any(note.startswith("the hook hanging failed 3 times: no answer within 10 s") for note in told):
        raise BenchError(f"No hook was waited for: {told[-3:]}")
    return ended


def no_more(stand: Scheduled) -> None:
    stand.on_node(CONTROLLER, "sh", "-c", "kill $(cat /run/hangs.pid); rm /run/hangs.pid")


def script(text: str) -> Callable[[Scheduled], object]:
    """Return an action that runs a script on the controller."""
    return lambda stand: stand.on_node(CONTROLLER, "sh", "-c", text)
