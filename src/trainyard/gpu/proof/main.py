"""The command `gpu-proof`: its stages, its options, its report."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from ...core.errors import TrainyardError
from . import compute, driver, plugin, pods
from .report import STATUS, Kit, Report, Result, Stage, failed, text

STAGES: Mapping[str, Stage] = {
    "host": driver.host,
    "nvml": driver.compare,
    "cdi": driver.cdi,
    "plugin": plugin.plugin,
    "tensorflow": compute.tensorflow,
    "nccl": compute.nccl,
    "training": compute.training,
    "pods": pods.pods,
}
"""Each stage proves what the next one needs; each also runs alone."""
EPILOG = """exit status: 0 every stage passed, 1 one failed, 2 one did not run

GPU_PROOF_PYTHON: a Python with TensorFlow and CUDA; or GPU_PROOF_WHEELS: a folder with their wheels for this Python."""


def main(root: Path, arguments: Sequence[str] | None = None) -> int:
    """Run the requested stages in order, and return the exit status.

    :param root: folder of the kit.
    """
    parser = argparse.ArgumentParser(
        "gpu-proof",
        description="Prove that the GPUs of this host, its driver and its programs work together.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stage", action="append", choices=STAGES, help="only this stage; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument("--output", type=Path, help="also write the JSON object to this file")
    options = parser.parse_args(arguments)
    names = options.stage or list(STAGES)
    report = Report(datetime.now(timezone.utc).strftime("%Y-%m-%d"))  # noqa: UP017 - Python 3.10
    with tempfile.TemporaryDirectory(prefix="gpu-proof-") as work:
        kit = Kit(root, Path(work), os.environ)
        for name in (each for each in STAGES if each in names):
            started = time.monotonic()
            result = outcome(STAGES[name], kit)
            report.stages.append((name, result, time.monotonic() - started))
            if not options.json:
                _print(text(*report.stages[-1]))
    written = json.dumps(report.as_dict(), indent=2, allow_nan=False)
    _print(written if options.json else f"result      {report.result}")
    if options.output:
        options.output.write_text(written + "\n", encoding="utf-8")
    return STATUS[report.result]


def outcome(stage: Stage, kit: Kit) -> Result:
    """Return the result of a stage; an error of any kind is a failure of that stage alone."""
    try:
        return stage(kit)
    except TrainyardError as error:
        return failed(str(error))
    except Exception as error:
        return failed(f"{type(error).__name__}: {error}")


def _print(line: str) -> None:
    """Print a cleaned line. A reader that has ended, such as `head`, changes neither stages nor status."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
