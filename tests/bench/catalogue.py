#!/usr/bin/env python3
"""Measure the waiting times of a user of the catalogue, several times each. Writes a table to docs/benchmarks.md.

    .venv/bin/python tests/bench/catalogue.py [--runs 3] [--only seed] [--inventory inventories/lab --lab trainyard]

All calls are those of a user. For ratios against an earlier commit see commits.py.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import page
import report
from stand import Stand, add_options, standing
from timed import BenchError

from trainyard.kube.api import KubeError

HEAD = ["what", "median (range)", "times", "aim"]
STEP_SECONDS = 120.0
RUNS = SEED, LONG, CNN, SUBMITTED = "bench-seed", "bench-long", "bench-cnn", "bench-submit"


@dataclass(frozen=True)
class Aim:
    """The required value of a median, and its format.

    :param value: None if it is only measured.
    :param at_least: whether more is better.
    :param ratio: whether it compares two alternating sides. Then it is also met if the range contains 1: no difference.
    """

    value: float | None = None
    at_least: bool = False
    unit: str = " s"
    digits: int = 1
    ratio: bool = False

    def met(self, values: Sequence[float]) -> bool:
        if self.value is None or (self.ratio and min(values) <= 1.0 <= max(values)):
            return True
        middle = statistics.median(values)
        return middle >= self.value if self.at_least else middle <= self.value

    def row(self, words: str, values: Sequence[float]) -> list[str]:
        """Return a line of the table."""
        bound = "at least" if self.at_least else "at most"
        aim = "" if self.value is None else f"{bound} {self.value:g}{self.unit}"
        missed = "" if self.met(values) else ", missed"
        return [words, report.spread(values, self.unit, self.digits), str(len(values)), aim + missed]


ACCURACY = "cnn_ps, 2 ps and 4 workers, 600 steps of 64: held-out accuracy"
SUBMIT, TRAININGS, LOGS = "train.yml, wait=false: submitted", "trainyard trainings", "trainyard logs"
AIMS = {
    ACCURACY: Aim(0.96, at_least=True, unit="", digits=4),
    SUBMIT: Aim(4.0),
    TRAININGS: Aim(2.0),
    LOGS: Aim(2.0),
}


def seed(stand: Stand, number: int) -> dict[str, float]:
    """Run the original requested training: 200 steps of 20, 1 ps, 2 workers, which are the catalogue's defaults."""
    kept = trained(stand, {"workload": "mnist_ps", "run": SEED, "train_steps": 200}, 200)
    return {"200 steps with the seed's knobs, apply to completion": kept["apply_to_completion_seconds"]}


def long(stand: Stand, number: int) -> dict[str, float]:
    entry = {"workload": "mnist_ps", "run": LONG, "train_steps": 2000, "accuracy_bound": 0.9}
    kept = trained(stand, entry, 2000)
    return {
        "mnist_ps, 2,000 steps, apply to completion": kept["apply_to_completion_seconds"],
        "mnist_ps, 2,000 steps, by the training's own clock": kept["seconds"],
    }


def cnn(stand: Stand, number: int) -> dict[str, float]:
    # Use a different seed each time, because equal runs would show little about the accuracy.
    kept = trained(stand, {"workload": "cnn_ps", "run": CNN, "seed": number}, 600)
    return {
        ACCURACY: kept["accuracy"],
        "the same, apply to completion": kept["apply_to_completion_seconds"],
    }


def verbs(stand: Stand, number: int) -> dict[str, float]:
    """Submit a run, and show it while it trains."""
    run, words = SUBMITTED, {"workload": "mnist_ps", "steps": "200000", "wait": "false"}
    stand.forget(run)
    submit, _ = stand.train(run=run, **words)
    until_it_steps(stand, run)
    trainings, table = stand.program("trainings")
    logs, lines = stand.program("logs", run)
    if run not in table or '"step"' not in lines:
        raise BenchError(f"The program does not show the run: {table}\n{lines[-500:]}")
    stand.forget(run)
    return {SUBMIT: submit, TRAININGS: trainings, LOGS: logs}


def second(stand: Stand, number: int) -> dict[str, float]:
    seconds, said = stand.play("site.yml")
    changed = re.findall(r"(?m)^(\S+) +: ok=.* changed=([1-9]\d*) ", said)
    if changed:
        raise BenchError(f"The second run changed {dict(changed)}.")
    return {"site.yml, second run, changed=0": seconds}


MEASURES: dict[str, Callable[[Stand, int], dict[str, float]]] = {
    "seed": seed,
    "long": long,
    "cnn": cnn,
    "verbs": verbs,
    "second": second,
}


def trained(stand: Stand, entry: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return the record of a run from its first step to its end.

    :raises BenchError: it has not done its steps.
    """
    stand.train(entry, resume="fresh")
    kept = stand.record(str(entry["run"]))
    if kept.get("steps") != steps or kept.get("result") not in ("passed", "no_bound"):
        raise BenchError(f"{entry['run']} ended with {kept.get('result')} at step {kept.get('steps')} of {steps}.")
    return kept


def until_it_steps(stand: Stand, run: str) -> None:
    deadline = time.monotonic() + STEP_SECONDS
    while True:
        chiefs = [pod["metadata"] for pod in stand.pods(run, "chief")]
        if any('"event": "step"' in stand.api.log(each["namespace"], each["name"]) for each in chiefs):
            return
        if time.monotonic() > deadline:
            raise BenchError(f"{run} has done no step within {STEP_SECONDS:.0f} s.")
        time.sleep(0.5)


def measure(stand: Stand, names: list[str], times: int) -> bool:
    """Measure and write the table; return whether every aim was reached.

    The measures alternate, so that a slow minute does not affect only one of them.
    """
    found: dict[str, list[float]] = {}
    for number in range(1, times + 1):
        for name in names:
            for words, value in MEASURES[name](stand, number).items():
                found.setdefault(words, []).append(value)
                print(f"catalogue: {number} of {times}: {words}: {value:.4g}", flush=True)
    for run in RUNS:
        stand.forget(run)
    aims = {words: AIMS.get(words, Aim()) for words in found}
    page.write("catalogue", HEAD, [aims[words].row(words, values) for words, values in found.items()])
    return all(aims[words].met(values) for words, values in found.items())


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--runs", type=int, default=3, help="how often each (default: %(default)s)")
    parser.add_argument("--only", default=",".join(MEASURES), help="with commas (default: all)")
    options = parser.parse_args(argv)
    names = options.only.split(",")
    if strange := set(names) - set(MEASURES):
        parser.error(f"no such measure: {', '.join(strange)}; there are {', '.join(MEASURES)}")
    try:
        with standing(options) as stand:
            return 0 if measure(stand, names, options.runs) else 1
    except (BenchError, KubeError) as error:
        print(f"catalogue: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
