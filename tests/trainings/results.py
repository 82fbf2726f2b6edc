"""Train a workload as processes on this machine, and print the table of results for its README.

    python -m tests.trainings.results cnn_ps --data FOLDER --ps 2 --workers 4 --seeds 1,2,3 -- --train_steps 600

MNIST is in the bundle's cache, /var/cache/trainyard/artefacts/mnist-KEY.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from engine.errors import ExitCode
from tests.trainings.processes import Processes

LIMIT_SECONDS = 3600.0
"""Time limit of one run."""


def run(options: argparse.Namespace, seed: str, flags: list[str]) -> str:
    """Train once, and return the table's row.

    :raises RuntimeError: the run ended without a verdict.
    """
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder), options.workload, options.ps, options.workers, options.data)
        try:
            code = processes.start_all("--seed", seed, *flags).wait(LIMIT_SECONDS)
        finally:
            processes.kill()
        if code not in (ExitCode.TRAINED, ExitCode.BOUND_NOT_REACHED):
            raise RuntimeError((processes.folder / "chief0.log").read_text(encoding="utf-8")[-2000:])
        judged = ", ".join(f"{event['step']}: {event['accuracy']:.4f}" for event in processes.events("evaluate"))
        (end,) = processes.events("end")
    return f"| {seed} | {judged} | {end['steps_per_second']:.0f} | {end['seconds']:.1f} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests.trainings.results",
        description=(__doc__ or "").partition("\n")[0],
        epilog="Arguments after -- are flags of the workload.",
    )
    parser.add_argument("workload", help="folder of workloads/training")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--ps", type=int, default=1, help="parameter servers (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="workers (default: %(default)s)")
    parser.add_argument("--seeds", default="1", help="comma-separated, one run each (default: %(default)s)")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, flags = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    print("| seed | held-out accuracy by step | steps per second | seconds |\n| --- | --- | --- | --- |", flush=True)
    for seed in options.seeds.split(","):
        try:
            print(run(options, seed, flags), flush=True)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
