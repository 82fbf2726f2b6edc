"""A lab with a schedule: a site from a separate checkout, and the host `controller1` that runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import secret
from mishaps import until
from schedule_site import CONTROLLER, FOLDER, INVENTORY, TELLTALE, check_out, write_inventory
from sides import LAB, Site
from stand import SITE_LIMIT, Stand
from timed import BenchError

USER = "trainyard-reprovision"
UNIT = f"{USER}.service"
BY_HAND = "by-hand.service"
BEGAN = "InactiveExitTimestampMonotonic"
RUN_LIMIT = 900.0
BOOT_LIMIT = 120.0


@dataclass(frozen=True)
class Ended:
    """A finished run.

    :param seconds: duration of its process, from the start of the unit.
    """

    status: int
    seconds: float
    said: str


class Scheduled(Stand):
    """A site with its schedule.

    :param canary: a secret in the site's vault and on its hosts.
    """

    canary = ""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._before: dict[str, str] = {}

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Return properties of a unit."""
        told = self.on_node(CONTROLLER, "systemctl", "show", unit, *(f"--property={name}" for name in names))
        return dict(line.split("=", 1) for line in told.splitlines() if "=" in line)

    def copy(self, unit: str, mode: str = "") -> None:
        """Copy the service under another name. It remains loaded after its end, because systemd unloads unreferenced
        units.

        :param mode: replaces the schedule's mode.
        """
        text = self.on_node(CONTROLLER, "cat", f"/etc/systemd/system/{UNIT}")
        self.on_node(CONTROLLER, "tee", f"/run/systemd/system/{unit}", given=copied(text, mode))
        self.on_node(CONTROLLER, "systemctl", "daemon-reload")

    def begin(self, *units: str) -> None:
        """Start units at the same moment, without waiting for them."""
        # This distinguishes a run from the previous one.
        self._before = {unit: self.show(unit, BEGAN)[BEGAN] for unit in units}
        self.on_node(CONTROLLER, "systemctl", "start", "--no-block", *units)

    def wait(self, unit: str = UNIT) -> Ended:
        """Wait for the end of a unit that was started.

        :raises BenchError: it does not end.
        """
        names = ("ActiveState", "ExecMainStatus", BEGAN, "ExecMainExitTimestampMonotonic")
        over = ("inactive", "failed") if unit == UNIT else ("active", "failed")

        def ended() -> dict[str, str] | None:
            shown = self.show(unit, *names)
            is_new = shown[BEGAN] != self._before.get(unit) and shown[names[3]] != "0"
            return shown if is_new and shown["ActiveState"] in over else None

        shown = until(f"the end of {unit}", ended, RUN_LIMIT)
        said = self.on_node(CONTROLLER, "journalctl", f"--unit={unit}", "--lines=80", "--no-pager", "--output=cat")
        if unit != UNIT:
            # A failed unit stays loaded until it is reset; a successful one is unloaded by the stop.
            self.on_node(CONTROLLER, "sh", "-c", f"systemctl stop {unit}; systemctl reset-failed {unit} || true")
        return Ended(int(shown[names[1]]), (int(shown[names[3]]) - int(shown[BEGAN])) / 1e6, said)

    def run(self, mode: str = "") -> Ended:
        """Run once to the end; with a mode, in a separate unit."""
        unit = BY_HAND if mode else UNIT
        if mode:
            self.copy(unit, mode)
        self.begin(unit)
        return self.wait(unit)

    def works(self) -> bool:
        """Return whether the service is active, including work after its main process."""
        return self.show(UNIT, "ActiveState")["ActiveState"] not in ("inactive", "failed")

    def look(self) -> dict[str, Any]:
        """Return the result of `schedule_probe.look`."""
        source = Path(__file__).with_name("schedule_probe.py").read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(self.on_node(CONTROLLER, "python3", "-", FOLDER, USER, given=source))
        return found

    def power_off(self, node: str) -> None:
        subprocess.run(["podman", "kill", "--signal=KILL", f"{self.lab}-{node}"], check=True, timeout=60)

    def power_on(self, node: str) -> None:
        """Start it again as the role `lab` does, and wait until it has booted."""
        name = f"{self.lab}-{node}"
        subprocess.run(["podman", "container", "cleanup", name], check=False, timeout=60, capture_output=True)
        subprocess.run(["podman", "start", name], check=True, timeout=60, capture_output=True)

        def booted() -> bool:
            ask = ["podman", "exec", name, "systemctl", "is-system-running"]
            told = subprocess.run(ask, check=False, capture_output=True, text=True, timeout=60).stdout.strip()
            return told in ("running", "degraded")

        until(f"the boot of {node}", booted, BOOT_LIMIT)


def copied(text: str, mode: str = "") -> str:
    """Return the text of a copy of the service, see `Scheduled.copy`."""
    found = re.sub(r"(?m)^Type=oneshot$", "Type=oneshot\nRemainAfterExit=yes", text)
    return re.sub(r"(?m)^(ExecStart=.*)$", rf"\1 --mode {mode}", found) if mode else found


@contextmanager
def scheduled() -> Iterator[Scheduled]:
    """Provide a lab of three nodes and a controller, after site.yml and playbooks/reprovision.yml; removed afterwards.

    :raises BenchError: the lab cannot be created.
    """
    folder = Path(tempfile.mkdtemp(prefix="trainyard-proof-", dir="/var/tmp"))
    print(f"logs are in {folder}", flush=True)
    root, vault, canary = folder / "checkout", folder / "vault_password", secret.new()
    vault.touch(mode=0o600)
    vault.write_text(f"{secret.new()}\n", encoding="utf-8")
    os.environ["ANSIBLE_VAULT_PASSWORD_FILE"] = str(vault)
    check_out(root)
    write_inventory(root / "inventories" / "lab", canary, vault)
    site = Site(folder, root)
    site.inventory = root / INVENTORY
    try:
        site.prepare()
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "proof"]):
            who = ["-c", "user.name=proof", "-c", "user.email=proof@proof"]
            subprocess.run(["git", *who, *words], cwd=root, check=True, timeout=60)
        site.down()
        stand = Scheduled(site.inventory, LAB, folder, root=root)
        stand.canary = canary
        stand.play("site.yml", limit=SITE_LIMIT)
        stand.on_node(CONTROLLER, "tee", "/usr/local/bin/telltale", given=TELLTALE.format(folder=FOLDER))
        stand.on_node(CONTROLLER, "tee", "/etc/telltale", given=f"192.0.2.9 {canary}\n")
        stand.on_node(CONTROLLER, "chmod", "755", "/usr/local/bin/telltale")
        stand.play("playbooks/reprovision.yml", limit=SITE_LIMIT)
        first = stand.run()
        if first.status != 0:
            raise BenchError(f"The first run on an untouched site ended with {first.status}: {first.said}")
        yield stand
    finally:
        site.down()
