"""Guards against root of one worker, each switched off once; the attack must then work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

import inputs
import red_node_attacks as attacks
import red_node_python as hostile
from red_node_attacks import ATTACKER, VICTIM
from stand import Stand

from trainyard.drift import playbook_runner
from trainyard.drift.find import find
from trainyard.drift.masking import Masker

GUARDS = "plain_output,host_answers"
SECONDS = 120
ASK = """
- hosts: ATTACKER:VICTIM
  gather_facts: false
  tasks:
    - ansible.builtin.ping:
"""


def asked(stand: Stand, mode: str, guards: str) -> tuple[playbook_runner.Played, list[Mapping[str, Any]]]:
    """Send one request to attacker and victim; return the result of the report's reader, and the events of
    ansible-runner.

    :param guards: enabled callbacks.
    """
    playbook, seen = stand.folder / "ask.yml", []
    playbook.write_text(ASK.replace("ATTACKER", ATTACKER).replace("VICTIM", VICTIM), encoding="utf-8")
    attacks.mode(stand, mode)
    try:
        played = playbook_runner.play(
            playbook, inventory=[str(stand.inventory)], mode=playbook_runner.CHECK, masker=Masker(), timeout=SECONDS,
            environment={"ANSIBLE_CALLBACKS_ENABLED": guards or "run_lock"}, raw=seen.append, root=inputs.ROOT,
        )  # fmt: skip
    finally:
        attacks.mode(stand, "honest")
    return played, seen


def forged(played: playbook_runner.Played) -> bool:
    return any(item.host == VICTIM for item in find(played.events).items)


def without_guards(stand: Stand) -> list[str]:
    """Switch each guard off once; return attacks that fail anyway, and those that work with the guards on."""
    wrong = [] if not forged(asked(stand, "forged", GUARDS)[0]) else ["an event is forged with all guards"]
    played, seen = asked(stand, "forged", "host_answers")
    events = [each for each in seen if (each.get("event_data") or {}).get("task") == hostile.TASK]
    wrong += [] if events else ["a forged event, without the cleaning of what is shown"]
    wrong += ["an event without the number of its run counts"] if forged(played) else []
    with mock.patch.object(playbook_runner.secrets, "randbits", return_value=hostile.JOB):
        wrong += [] if forged(asked(stand, "forged", "host_answers")[0]) else ["the same, with a number that is known"]
    played, _ = asked(stand, "flood", "plain_output")
    failed = [each for each in played.events if each.get("host") == ATTACKER and "unreachable" in each["event"]]
    return wrong + (["an answer of 20 MB is refused without its bound"] if failed else [])
