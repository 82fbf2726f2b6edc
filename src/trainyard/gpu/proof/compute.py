"""The stages that compute: `tensorflow`, `nccl` and `training`. They need a Python with TensorFlow."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.command import run
from ...core.errors import CommandError
from ...core.untrusted import items, line, mapping, number, whole
from .driver import readings
from .report import Kit, Result, failed, judged, not_run

PROGRAM = Path(__file__).with_name("with_tensorflow.py").resolve()
PYTHON, WHEELS = "GPU_PROOF_PYTHON", "GPU_PROOF_WHEELS"
"""Variables of the call: a Python with TensorFlow, or a folder with the wheels of TensorFlow and its dependencies."""
INSTALL_TIMEOUT = 600
COMPUTE_TIMEOUT = 300
"""Seconds; the first use of a new GPU compiles its kernels, which takes minutes."""
TRAINING_TIMEOUT = 900
ACCURACY_BOUND = 0.9
"""The bound of `mnist_gpu` in the catalogue."""
NCCL = "NCCL version"
"""NCCL prints it at its start if NCCL_DEBUG is VERSION: evidence that TensorFlow used it."""


class MissingError(Exception):
    """No Python with TensorFlow; the text is the reason and the remedy."""


def interpreter(kit: Kit) -> tuple[str, str]:
    """Return a Python program, and the folder to add to its path; wheels are installed into a temporary folder.

    :raises MissingError: the wheels cannot be installed.
    """
    if python := kit.environment.get(PYTHON):
        if not shutil.which(python):
            raise MissingError(f"{PYTHON} is {python}, which is no program. Set it to a Python with TensorFlow.")
        return python, ""
    if not kit.environment.get(WHEELS):
        return sys.executable, ""
    site = kit.work / "site"
    if not site.exists():
        folder = Path(kit.environment[WHEELS])
        files = sorted(map(str, folder.glob("*.whl")))
        if not files:
            raise MissingError(
                f"{WHEELS} is {folder}, which has no wheel. Set it to a folder with TensorFlow's wheels."
            )
        # A wheel of pip works without installation; Debian's Python has none.
        own = next(iter(sorted(map(str, (kit.root / "wheels").glob("pip-*.whl")))), "")
        argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
        partial = kit.work / "site.partial"
        try:
            run([*argv, f"--target={partial}", *files], timeout=INSTALL_TIMEOUT, env={"PYTHONPATH": own})
        except CommandError as error:
            raise MissingError(f"The wheels of {folder} cannot be installed: {error}") from error
        partial.rename(site)
    return sys.executable, str(site)


def _compute(kit: Kit, name: str) -> tuple[Mapping[str, Any], str]:
    """Run `with_tensorflow.py`, and return its values and its whole output.

    :raises MissingError: the Python has no TensorFlow.
    """
    python, site = interpreter(kit)
    env = {"PYTHONPATH": site, "TF_CPP_MIN_LOG_LEVEL": "1", "NCCL_DEBUG": "VERSION"}
    output = run([python, str(PROGRAM), name], timeout=COMPUTE_TIMEOUT, env=env, outlives=False).stdout
    found = _last(output)
    if found.get("missing"):
        raise MissingError(
            f"{python} has no TensorFlow ({line(found['missing'], 200)}). Set {PYTHON} to a Python that has it, or "
            f"{WHEELS} to a folder with its wheels."
        )
    return found, output


def _last(output: str) -> Mapping[str, Any]:
    """Return the object in the last line of an output; empty if there is none."""
    try:
        return mapping(json.loads((output.strip().splitlines() or ["{}"])[-1]))
    except (ValueError, RecursionError):
        return {}


def _tensorflow_faults(kit: Kit, found: Mapping[str, Any]) -> Iterator[str]:
    version = line(found.get("version"), 40)
    if not found.get("cuda"):
        yield f"this TensorFlow ({version}) has no CUDA"
    wanted, seen = len(readings(kit).gpus), len(items(found.get("gpus")))
    if wanted != seen:
        yield f"TensorFlow {version} finds {seen} of {wanted} GPUs"


def tensorflow(kit: Kit) -> Result:
    """Let TensorFlow list the GPUs, and compare a product of each with the CPU's."""
    try:
        found, _ = _compute(kit, "product")
    except MissingError as error:
        return not_run(str(error))
    faults = list(_tensorflow_faults(kit, found))
    if not faults and items(found.get("wrong")):
        faults = [f"the product of {_names(found['wrong'])} differs from the CPU's"]
    worst = number(found.get("worst"), 0)
    if not faults and worst is None:
        faults = ["TensorFlow computed no product"]
    return judged(
        faults,
        f"TensorFlow {line(found.get('version'), 40)} multiplied on {_names(found.get('gpus'))}",
        cuda=line(found.get("cuda"), 40),
        error_of_permitted=None if worst is None else round(worst, 3),
    )


def _names(value: Any) -> str:
    return ", ".join(line(each, 80) for each in items(value))


def nccl(kit: Kit) -> Result:
    """Add a tensor over all GPUs with NCCL; shows the bus bandwidth in GB/s."""
    count = len(readings(kit).gpus)
    if count < 2:
        return not_run("The host has one GPU, and an all-reduce needs two.")
    try:
        found, output = _compute(kit, "all_reduce")
    except MissingError as error:
        return not_run(str(error))
    faults = list(_tensorflow_faults(kit, found))
    rate = number(found.get("gb_per_s"), 0)
    if not faults and rate is None:
        faults = ["TensorFlow reduced nothing"]
    if not faults and items(found.get("wrong")):
        faults = [f"the sum of {_names(found['wrong'])} is wrong"]
    if not faults and NCCL not in output:
        faults = ["TensorFlow did not use NCCL"]
    return judged(faults, f"the sum over {count} GPUs is right", gb_per_s=None if rate is None else round(rate, 1))


def training(kit: Kit) -> Result:
    """Run the training `mnist_gpu` as one process, with its defaults; it has to reach its bound on a GPU."""
    try:
        python, site = interpreter(kit)
        _compute(kit, "versions")
    except MissingError as error:
        return not_run(str(error))
    argv = [python, "-m", "training.mnist_gpu.main", "--require_gpu=true", f"--accuracy_bound={ACCURACY_BOUND}"]
    argv += [f"--data_dir={kit.root / 'data'}", f"--log_dir={kit.work / 'training'}"]
    path = ":".join(filter(None, (str(kit.root / "workloads"), site)))
    # Each status is the training's own report.
    output = run(argv, timeout=TRAINING_TIMEOUT, env={"PYTHONPATH": path}, ok=range(-64, 256), outlives=False)
    events = [mapping(each) for each in map(_event, output.stdout.splitlines()) if mapping(each)]
    end: Mapping[str, Any] = next((each for each in reversed(events) if each.get("event") in ("end", "error")), {})
    if end.get("event") != "end":
        said = (
            " ".join(line(end.get(key), 400) for key in ("message", "remedy"))
            if end
            else line(output.stderr[-400:], 400)
        )
        return failed(f"the training ended with status {output.returncode}: {said}")
    accuracy, compute = number(end.get("accuracy"), 0, 1), line(end.get("compute"), 20)
    faults = [] if compute == "gpu" else [f"the training computed on {compute or 'an unknown device'}"]
    if output.returncode or end.get("result") != "passed":
        faults.append(f"its accuracy is {accuracy}, and the bound is {ACCURACY_BOUND}")
    steps, rate = whole(end.get("step"), 0), number(end.get("steps_per_second"), 0)
    return judged(
        faults,
        f"mnist_gpu passed its bound {ACCURACY_BOUND} in {steps} steps, compute {compute}",
        accuracy=None if accuracy is None else round(accuracy, 4),
        steps_per_second=None if rate is None else round(rate, 1),
    )


def _event(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
