#!/usr/bin/env python3
"""Attack a lab with the token of a console operator of one namespace, and check that everything else is unchanged.

    .venv/bin/python tests/bench/red_operator.py [--inventory inventories/lab --lab trainyard]

30 requests must be refused, and accepted ones must harm no program, page or file. Then each guard is switched off once,
and the attack must work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import red
from red_attempts import OTHER, There, attempts
from red_console import BOARDS, Visitor, console_faults, restarts
from red_guards import OFF, open_volumes, refused, without
from red_part import run_part
from red_planted import (
    ABOVE,
    PATH,
    RECORD,
    RUNS,
    hostile_records,
    plant,
    plant_record,
    plant_run,
    stop,
    stop_elsewhere,
    uproot,
    volume_is_there,
)
from stand import NAMESPACE, Stand
from timed import BenchError

from trainyard.kube.api import Api
from trainyard.trainings import record
from trainyard.trainings.names import NAME_LABEL

USER = "alice"
"""An operator of `trainings` alone, by inventories/lab."""


def board(visitor: Visitor) -> int:
    """Return the status of the TensorBoard of another namespace."""
    return visitor.ask(f"/tensorboard/{OTHER}/training/", port=BOARDS)[0]


def programs(stand: Stand) -> list[str]:
    """Return faults of the output of programs that read planted runs."""
    wrong = []
    for words in (("trainings",), ("trainings", "--json"), ("why", PATH), ("why", ABOVE, "--json"), ("logs", PATH)):
        code, said = stand.answer(*words)
        wrong += [f"trainyard {' '.join(words)} has {each}" for each in red.amiss(said)]
        wrong += [] if code in (0, 1) else [f"trainyard {' '.join(words)} ended with {code}"]
    return wrong


def harmless(stand: Stand, api: Api, visitor: Visitor, there: There, wrong: list[str]) -> None:
    """Send accepted requests, run every program on the results, and record damage."""
    logs, stolen = stand.state / "logs", stand.folder / "stolen"
    before, console = set(red.hashes(logs)), restarts(stand)
    plant_run(api, there, PATH, str(stolen))
    plant_run(api, there, ABOVE, "../../../../../../../" + str(stolen)[1:])
    red.tried("programs", wrong, lambda: programs(stand))
    red.tried("console", wrong, lambda: console_faults(stand, visitor, console, PATH, ABOVE))
    for name, change in hostile_records().items():
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{there.record}"
        api.call("PATCH", path, body={"data": change}, content_type="application/merge-patch+json", what=name)
        red.tried(f"{name}, programs", wrong, lambda: programs(stand))
        red.tried(f"{name}, console", wrong, lambda: console_faults(stand, visitor, console, RECORD))
    for run in (PATH, ABOVE):
        red.tried(f"stop of {run}", wrong, lambda run=run: stop(stand, run))
    red.tried("deletion", wrong, lambda: stop(stand, RECORD, delete=True))
    kept = volume_is_there(stand)
    wrong += [] if kept else ["The volume of another namespace was deleted."]
    wrong += [f"a log elsewhere: {each}" for each in red.strange_logs(logs, RUNS, before)]
    wrong += [f"{stolen} was written"] if stolen.exists() else []
    status = board(visitor)
    wrong += [] if status == 403 else [f"the TensorBoard of another namespace is answered with {status}"]


def open_gates(stand: Stand, api: Api, there: There) -> list[str]:
    """Switch off the guards of this project's own programs, one at a time; return attacks that fail anyway."""
    wrong = []
    folder = stand.folder / "open"
    plant_run(api, there, PATH, str(folder))
    said = red.open_program(stand, "trainings")
    wrong += [] if red.amiss(said) else ["hostile text, without the gate for texts"]
    with red.open_paths():
        stop_elsewhere(stand.api, PATH, stand.folder / "logs-of-the-attack")
    wrong += [] if red.hashes(folder) else ["an annotation as a path, without the gate for paths"]
    plant_record(stand)
    with open_volumes():
        stop_elsewhere(stand.api, RECORD, stand.folder / "logs-of-the-attack", delete=True)
    return wrong + (["a volume of another namespace, without its comparison"] if volume_is_there(stand) else [])


def measure(stand: Stand) -> list[str]:
    """Run all attacks; return the faults."""
    wrong: list[str] = []
    token = red.new_token(stand, USER)
    api = red.as_user(stand, USER, token)
    visitor = Visitor(stand.program("console")[1].strip().splitlines()[-1], stand.state / "console" / "ca.crt")
    if visitor.log_in(token) != 303:
        raise BenchError("The operator cannot log in.")
    there = There(image_of_a_run(stand), plant(stand))
    try:
        verdict, files, objects = red.verdict(stand), red.controller(stand), red.others(stand)
        tries = attempts(there)
        red.tried(f"{len(tries)} requests", wrong, lambda: refused(api, tries))
        harmless(stand, api, visitor, there, wrong)
        red.tried("files of the controller", wrong, lambda: red.differences(files, red.controller(stand)))
        red.tried("other namespaces", wrong, lambda: red.differences(objects, red.others(stand)))
        red.tried("verdict", wrong, lambda: [] if red.verdict(stand) == verdict else [f"{verdict} before"])
        plant_record(stand)
        for guard in OFF:
            check: Callable[[], list[str]] = lambda guard=guard: without(stand, guard, api, tries)  # noqa: E731
            red.tried(f"without {guard}", wrong, check)
        red.tried("without a gate", wrong, lambda: open_gates(stand, api, there))
    finally:
        uproot(stand)
    return wrong


def image_of_a_run(stand: Stand) -> str:
    """Return an image that the nodes have, by digest, from the record of a run."""
    found = [record.read(each) for each in stand.api.list("v1", "ConfigMap", NAMESPACE, labels=NAME_LABEL)]
    images = [str(each["files"]["image"]) for each in found if "files" in each]
    if not images:
        raise BenchError("No run of the lab has a record that names its image.")
    return images[0]


def main(argv: list[str]) -> int:
    return run_part("red_operator", __doc__, measure, "nothing was harmed", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
