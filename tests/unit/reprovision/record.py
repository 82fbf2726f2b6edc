"""Records the golden streams of this folder anew: `python -m tests.unit.reprovision.record`, from the checkout.

Each is what ansible-runner hands on while one play of streams/*.yml runs in check mode against this machine, without
what differs from run to run or from machine to machine.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "streams"
ROOT = FOLDER.parents[3]
NOTHING = ("uuid", "playbook", "task_path", "created", "start", "end", "duration", "event_loop", "pid", "remote_addr")


def record(playbook: Path) -> None:
    """Run one playbook and write its stream beside it."""
    from trainyard.drift.masking import Masker
    from trainyard.drift.playbook_runner import CHECK, play

    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "stale.conf").write_text("# Managed by trainyard\n", encoding="utf-8")
        Path(folder, "edited.conf").write_text("# Managed by trainyard\na=0\nb=2\n", encoding="utf-8")

        def keep(event: Mapping[str, Any]) -> None:
            data = {key: value for key, value in event["event_data"].items() if key not in NOTHING}
            data.pop("playbook_uuid", None)
            data.pop("play_uuid", None)
            found = {"event": event["event"], "stdout": event["stdout"], "event_data": data}
            if event["event"] not in ("verbose", "playbook_on_task_start", "runner_on_start"):
                lines.append(json.dumps(found).replace(folder, "/etc/site").replace(str(ROOT), "/checkout"))

        play(
            playbook, inventory=[str(FOLDER / "hosts.yml")], mode=CHECK, timeout=120, masker=Masker(), raw=keep,
            extra={"folder": folder},
        )  # fmt: skip
    playbook.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ["ANSIBLE_CONFIG"] = str(ROOT / "ansible.cfg")
    for each in sorted(FOLDER.glob("play_*.yml")):
        record(each)
