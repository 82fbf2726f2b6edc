#!/usr/bin/env python3
"""Run hostile programs in a lab as trainings of `own`, and check that record, kept log, exit code and console are
right.

    .venv/bin/python tests/bench/red_program.py [--inventory inventories/lab --lab trainyard]

There are three runs: bars and bytes between events, forged events before a failure, and a gibibyte of output. Then the
guards of the readers are switched off, and the same logs must mislead them.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import inputs
import red
from red_console import Visitor, console_faults, restarts
from red_memory import Children
from red_part import run_part
from stand import Stand
from timed import BenchError

from trainyard.trainings.kept_logs import RUN_BYTES
from trainyard.trainings.log_events import SUCCESSES, events

CODE = Path(__file__).with_name("red_program_code")
NOISE, FORGED, FLOOD = RUNS = ("red-noise", "red-forged", "red-flood")
MORE_THAN_KEPT = 2**20
"""Bytes of notes and of the last reading, beyond the limit of a run's kept logs."""
MOST_FOLLOWER = 400 * 2**20
"""Maximum bytes of a process on this machine: Ansible alone has 100 to 150 MiB, and a follower holds some MiB."""
NODE = "worker1"


def program() -> ModuleType:
    """Return the program that runs in the pods, for its output."""
    spec = importlib.util.spec_from_file_location("red_program_main", CODE / "main.py")
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


PRINTED = program()


def entry(run: str) -> dict[str, Any]:
    """Return a training of `own` with the hostile program; one attempt each."""
    return {
        "workload": "own",
        "run": run,
        "code": {"folder": str(CODE)},
        "command": f"python main.py {run.removeprefix('red-')}",
        "success": {"metric": "accuracy", "at_least": 0.9},
        "max_restarts": 0,
    }


def kept_log(stand: Stand, run: str) -> bytes:
    """Return the kept log of a run's only pod.

    :raises BenchError: there is none, or more than one.
    """
    files = sorted((stand.state / "logs" / f"trainings-{run}").rglob("*.log"))
    if len(files) != 1:
        raise BenchError(f"{run} has {len(files)} kept logs.")
    return files[0].read_bytes()


def noise_faults(kept: bytes, record: Mapping[str, Any]) -> list[str]:
    """Return faults of the run that prints bars and bytes, and succeeds."""
    # containerd treats a carriage return before a line feed as part of the line ending (readLine of its CRI logger).
    wanted = b"".join(PRINTED.noise()).replace(b"\r\n", b"\n")
    said = events(kept.decode("utf-8", "surrogateescape"))
    steps = [each["step"] for each in said if each["event"] == "step"]
    wrong = [] if kept == wanted else [difference(kept, wanted)]
    wrong += [] if steps == list(range(1, PRINTED.STEPS + 1)) else [f"{len(steps)} of {PRINTED.STEPS} events are found"]
    return wrong + result_faults(record)


def difference(kept: bytes, wanted: bytes) -> str:
    """Return the number of lines of a differing log, and the first line that differs."""
    mine, printed = kept.split(b"\n"), wanted.split(b"\n")
    numbers = (number for number, pair in enumerate(zip(mine, printed, strict=False)) if pair[0] != pair[1])
    first = next(numbers, min(len(mine), len(printed)))
    got, was = mine[first : first + 1], printed[first : first + 1]
    return f"the kept log has {len(mine)} of {len(printed)} lines; line {first} is {got!r:.200} and was {was!r:.200}"


def result_faults(record: Mapping[str, Any]) -> list[str]:
    """Return faults of the record of a run that succeeds."""
    got = (record.get("result"), record.get("accuracy"))
    return [] if got == ("passed", PRINTED.ACCURACY) else [f"the record says {got}"]


def forged_faults(code: int, record: Mapping[str, Any]) -> list[str]:
    """Return faults of the run that forges its end, and fails."""
    wrong = [] if code else ["train.yml succeeds"]
    wrong += ["the record says success"] if record.get("result") in SUCCESSES else []
    try:
        json.dumps(dict(record), allow_nan=False)
    except ValueError:
        wrong.append("the record has a number that is not valid in JSON")
    return wrong


def flood_faults(kept: int, record: Mapping[str, Any], follower: int) -> list[str]:
    """Return faults of the run that prints a gibibyte.

    :param kept: bytes of all its kept logs.
    :param follower: maximum bytes of a process on this machine that follows it.
    """
    wrong = [] if kept <= RUN_BYTES + MORE_THAN_KEPT else [f"{kept >> 20} MiB are kept"]
    wrong += [] if follower < MOST_FOLLOWER else [f"a process that follows had {follower / 2**20:.0f} MiB"]
    return wrong + result_faults(record)


def train(stand: Stand, run: str) -> int:
    """Submit a run and wait for its end; return 0 if the playbook succeeds."""
    try:
        stand.train(entry(run), resume="fresh")
    except BenchError:
        return 1
    return 0


def programs(stand: Stand) -> list[str]:
    """Return faults of the output of the programs that show the runs."""
    wrong = []
    calls = [("trainings",), ("trainings", "--json"), *((verb, run) for run in RUNS for verb in ("why", "logs"))]
    for words in calls:
        code, said = stand.answer(*words)
        wrong += [f"trainyard {' '.join(words)} has {each}" for each in red.amiss(said)]
        wrong += [] if code in (0, 1) else [f"trainyard {' '.join(words)} ended with {code}"]
    return wrong


def files(stand: Stand) -> str:
    """Return the files of all other runs on the claim, with their hashes."""
    mine = " ".join(f"! -path '{inputs.SHARED}/{run}/*'" for run in RUNS)
    return stand.on_node(NODE, "sh", "-c", f"find {inputs.SHARED} -type f {mine} -exec sha256sum {{}} + | sort")


def without_guards(stand: Stand) -> list[str]:
    """Read the same logs without guards; return attacks that fail anyway."""
    kept = kept_log(stand, NOISE).decode("utf-8", "replace")
    # Python splits lines at ten different characters, and a bar hides the event behind it.
    lines = [each for each in kept.splitlines() if each.startswith("{")]
    found = [each for each in lines if '"step"' in each and each.endswith("}")]
    wrong = ["a reader of lines of Python loses nothing"] if len(kept.splitlines()) == kept.count("\n") + 1 else []
    wrong += [] if len(found) != PRINTED.STEPS else ["a reader without the rule for bars finds all events"]
    said = red.open_program(stand, "logs", NOISE)
    return wrong + ([] if red.amiss(said) else ["trainyard logs without the gate for texts prints no command"])


def measure(stand: Stand) -> list[str]:
    """Run all attacks; return the faults."""
    wrong: list[str] = []
    visitor = Visitor(stand.program("console")[1].strip().splitlines()[-1], stand.state / "console" / "ca.crt")
    if visitor.log_in(red.new_token(stand, "bob")) != 303:
        raise BenchError("The viewer cannot log in.")
    console, before, controller = restarts(stand), files(stand), red.controller(stand)
    with Children() as children:
        codes = {run: train(stand, run) for run in RUNS}
    records = {run: stand.record(run) for run in RUNS}
    red.tried(NOISE, wrong, lambda: noise_faults(kept_log(stand, NOISE), records[NOISE]))
    red.tried(FORGED, wrong, lambda: forged_faults(codes[FORGED], records[FORGED]))
    kept = sum(path.stat().st_size for path in (stand.state / "logs" / f"trainings-{FLOOD}").rglob("*.log"))
    red.tried(FLOOD, wrong, lambda: flood_faults(kept, records[FLOOD], children.most))
    red.tried("exit codes", wrong, lambda: [run for run in (NOISE, FLOOD) if codes[run]])
    red.tried("programs", wrong, lambda: programs(stand))
    red.tried("console", wrong, lambda: console_faults(stand, visitor, console, *RUNS))
    red.tried("without a guard", wrong, lambda: without_guards(stand))
    for run in RUNS:
        stand.forget(run)
    red.tried("files of other runs", wrong, lambda: [] if files(stand) == before else ["they were changed"])
    red.tried("controller", wrong, lambda: red.differences(controller, red.controller(stand)))
    return wrong


def main(argv: list[str]) -> int:
    return run_part("red_program", __doc__, measure, "nothing was misled", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
