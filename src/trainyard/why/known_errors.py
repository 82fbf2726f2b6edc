"""Known errors of programs: patterns of their last lines, with cause and remedy.

A program's log is untrusted. A pattern only selects a row; names in its groups are quoted after they were cleaned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.untrusted import line
from ..trainings.crashes import LOST_PEER

LINES = 60
"""Last lines that are searched: a traceback of Keras has about 40."""
WIDTH = 2_000
"""Characters of a line that are searched."""
_SHOWN = 120


@dataclass(frozen=True)
class KnownError:
    """A row of the table.

    :param pattern: what the error prints; its group `name` may be used as `{name}` in the texts.
    :param cause: a sentence without its subject, which is the pod.
    :param source: where the text of the error comes from.
    """

    pattern: re.Pattern[str]
    cause: str
    remedy: str
    source: str


def _row(pattern: str, cause: str, remedy: str, source: str) -> KnownError:
    return KnownError(re.compile(pattern), cause, remedy, source)


_NAME = r"(?P<name>[^'\"]{1,200})"
_IMAGE = "use an image that has it (-e image=), or put it into the code folder"
_WRITABLE = "write to $LOG_DIR or /tmp; all else is read-only"
_DATA = (
    'a run has no way out of the cluster: import the data (docs/tasks/trainings.md, "Data") and read it from $DATA_DIR'
)
_BATCH = "use a smaller batch or model, or more GPUs"

TABLE: Sequence[KnownError] = (
    _row(r"TBNotInstalledError|TensorBoard is not installed", "its image has no TensorBoard, which summaries need",
         "use an image with the package tensorboard (-e image=)", "tensorflow/python/summary/tb_summary.py"),
    _row(r"unsupported type \(<class 'tensorflow\.python\.distribute\.values\.PerReplica'>\)",
         "Keras 3 cannot train under this distribution strategy (keras#20585)",
         "set TF_USE_LEGACY_KERAS=1 in env (the project's image has tf_keras), or write the training loop by hand",
         "tried with two workers, TensorFlow 2.21.0, Keras 3.15.1"),
    _row(rf"ModuleNotFoundError: No module named '{_NAME}'", "its image lacks the Python module {name}", _IMAGE,
         "Python, importlib"),
    _row(rf"ImportError: {_NAME}: cannot open shared object file", "its image lacks the library {name}", _IMAGE,
         "glibc, dlerror"),
    _row(rf"Read-only file system: '{_NAME}'", "{name} is read-only", _WRITABLE, "errno 30, EROFS"),
    _row(r"shm/nccl-|NCCL.{0,200}No space left on device", "the shared memory is too small for NCCL",
         "set shm, as in -e shm=1Gi", "nccl#290, nccl#525"),
    _row(rf"No space left on device: '{_NAME}'", "there is no space left for {name}",
         "raise shm for /dev/shm, or logs.size for $LOG_DIR; /tmp has 512 MiB", "errno 28, ENOSPC"),
    _row(r"No space left on device", "one of its folders is full",
         "raise shm for /dev/shm, or logs.size for $LOG_DIR; /tmp has 512 MiB", "errno 28, ENOSPC"),
    _row(rf"Permission denied: '{_NAME}'", "it may not write {name}, because it runs as the user 65532", _WRITABLE,
         "errno 13, EACCES"),
    _row(r"getpwuid\(\): uid not found|no such user", "it asks for the name of its user, which the image does not have",
         "set USER and LOGNAME in env, or add the user 65532 to the image", "Python, pwd"),
    _row(r"Temporary failure in name resolution|Name or service not known|Network is unreachable|No route to host",
         "it connects to a host outside the cluster", _DATA, "glibc, gai_strerror; errno 101, 113"),
    _row(r"OOM when allocating tensor|CUDA_ERROR_OUT_OF_MEMORY|out of memory trying to allocate",
         "the memory of its GPU is too small", _BATCH, "tensorflow/core/common_runtime/bfc_allocator.cc"),
    _row(r"CUDA driver version is insufficient|CUDA_ERROR_UNSUPPORTED_PTX|forward compatibility was attempted",
         "the driver of its node is too old for the CUDA of its image",
         "set cuda to the image's version, so that such a node is refused, or use a newer driver branch",
         "CUDA, cudaErrorInsufficientDriver"),
    _row(r"no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE", "it finds no GPU", "request one, as in -e gpus=1",
         "CUDA, cudaErrorNoDevice"),
    _row(r"unhandled (?:system|cuda) error.{0,200}NCCL|NCCL.{0,200}unhandled (?:system|cuda) error|NCCL WARN",
         "NCCL failed", "set NCCL_DEBUG=INFO in env, and read the lines of NCCL in trainyard logs", "NCCL, enqueue.cc"),
    _row(r"compiled to use (?:AVX|SSE)|Illegal instruction", "the CPU lacks an instruction set that TensorFlow needs",
         "run it on another node; base_cpu_flags refuses such hosts", "tensorflow/core/platform/cpu_feature_guard.cc"),
    _row(rf"can't open file '{_NAME}'", "its command starts {name}, which is not there",
         "correct the path; it is relative to the code folder", "Python, main.c"),
    _row(r"(?:sh|bash): (?:line )?\d{1,4}: (?P<name>[^:]{1,100}): not found", "its image has no program {name}", _IMAGE,
         "dash and bash"),
    _row(r"error: unrecognized arguments: (?P<name>.{1,100})", "its program does not know the option {name}",
         "correct the command", "Python, argparse"),
    _row(rf"FileNotFoundError: \[Errno 2\] No such file or directory: '{_NAME}'", "{name} is not there",
         "correct the path: data is in $DATA_DIR, code in the working directory", "errno 2, ENOENT"),
    # The list of modules ends the report, whose first line may be further up than `LINES`.
    _row(r"Fatal Python error: (?:Segmentation fault|Bus error|Aborted|Floating point exception)|^Extension modules: ",
         "it crashed in native code, not in Python", "read the stacks in trainyard logs; if it crashes again, try "
         "another version of TensorFlow (-e image=)", "Python, faulthandler.c"),
)  # fmt: skip
"""The first row with a match in the log applies, so that a row precedes a more general one."""


def known_error(lines: Sequence[str]) -> tuple[str, str] | None:
    """Return cause and remedy of a known error in the last lines of a log; None without one."""
    text = [each[:WIDTH] for each in lines[-LINES:]]
    for row in TABLE:
        for each in reversed(text):
            if match := row.pattern.search(each):
                name = line(match.groupdict().get("name") or "", _SHOWN)
                return row.cause.replace("{name}", name), row.remedy
    return None


def follows(lines: Sequence[str]) -> bool:
    """Return whether the last error of a log is that of a lost peer."""
    return any(LOST_PEER.search(each[:WIDTH]) for each in lines[-LINES:]) and known_error(lines) is None
