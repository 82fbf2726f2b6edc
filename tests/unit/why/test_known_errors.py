"""Known errors of programs, each with a line as the program prints it, and the first crash of several."""

from __future__ import annotations

import time

import pytest

from tests.unit.why.samples import live, look, over
from trainyard.why.judge import judge
from trainyard.why.known_errors import TABLE, follows, known_error
from trainyard.why.snapshot import Snapshot

LINES = [
    "tensorflow.python.summary.tb_summary.TBNotInstalledError: TensorBoard is not installed, missing implementation "
    "for tf.summary.scalar",
    "}) with an unsupported type (<class 'tensorflow.python.distribute.values.PerReplica'>) to a Tensor.",
    "ModuleNotFoundError: No module named 'pandas'",
    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "OSError: [Errno 30] Read-only file system: 'model.keras'",
    "worker-0:7:42 [0] include/shm.h:48 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-r0xYz",
    "OSError: [Errno 28] No space left on device: '/tmp/cache/x'",
    "RuntimeError: write failed: No space left on device",
    "PermissionError: [Errno 13] Permission denied: '/root/.keras'",
    "KeyError: 'getpwuid(): uid not found: 65532'",
    "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[8192,8192]",
    "CUDA driver version is insufficient for CUDA runtime version",
    "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "worker-1:7:9 [0] transport/net_socket.cc:51 NCCL WARN NET/Socket : no interface found",
    "The TensorFlow library was compiled to use AVX instructions, but these aren't available on your machine.",
    "python: can't open file '/opt/trainyard/code/trian.py': [Errno 2] No such file or directory",
    "/bin/sh: 1: horovodrun: not found",
    "train.py: error: unrecognized arguments: --epoch 3",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'",
    "Fatal Python error: Segmentation fault",
]
"""One line for each row of the table, in its order."""


def test_each_row_has_a_line_that_it_alone_explains() -> None:
    assert len(TABLE) == len(LINES) >= 15
    for row, line in zip(TABLE, LINES, strict=True):
        name = row.pattern.search(line)
        assert name, row.pattern
        cause, remedy = known_error(["Traceback (most recent call last):", line, "more text"]) or ("", "")
        assert remedy == row.remedy, line
        assert "{name}" not in cause


def test_the_last_line_of_a_report_of_faulthandler_is_enough() -> None:
    report = ["Fatal Python error: Aborted", *['  File "x.py", line 1 in wait'] * 80]
    modules = "Extension modules: numpy.core._multiarray_umath, google._upb._message (total: 76)"
    cause, _ = known_error([*report, "", modules]) or ("", "")
    assert cause == "it crashed in native code, not in Python"
    assert known_error(["the Extension modules: are built"]) is None


def test_the_name_of_the_line_is_in_the_cause() -> None:
    cause, remedy = known_error(["ModuleNotFoundError: No module named 'pandas'"]) or ("", "")
    assert (cause, remedy[:12]) == ("its image lacks the Python module pandas", "use an image")


@pytest.mark.parametrize("line", ["", "ValueError: shapes do not match", "No module named x", "epoch 1/3 error: 0.3"])
def test_another_text_is_unknown(line: str) -> None:
    assert known_error([line]) is None


def test_hostile_lines_cost_little_and_are_cleaned() -> None:
    begin = time.process_time()
    for line in ("NCCL" + "x" * 2_000_000, "sh: 1: " * 300_000, "'" * 2_000_000, "No module named '" * 100_000):
        known_error([line] * 100)
        follows([line] * 100)
    assert time.process_time() - begin < 2
    cause, _ = known_error(["ModuleNotFoundError: No module named '\x1b[31mred\r\nroot'"]) or ("", "")
    assert cause.isprintable() and len(cause) < 200


def several(*ends: tuple[int, float, str]) -> Snapshot:
    """A run of users' workers that has failed.

    :param ends: exit code, seconds since the end, and last line of each worker.
    """
    run = live(topology="multi_worker", flags={}, worker={"replicas": len(ends)}, status={"terminalState": "Failed"})
    pods = [over("worker", code, index, done=done, run=run) for index, (code, done, _) in enumerate(ends)]
    logs = {pod["metadata"]["name"]: end[2] for pod, end in zip(pods, ends, strict=True)}
    return look(pods, logs, run)


LOST = "tensorflow.python.framework.errors_impl.UnavailableError: failed to connect to all addresses"


def test_the_pod_that_ended_first_is_the_cause_and_lost_connections_follow() -> None:
    found = judge(several((1, 5, LOST), (1, 6, LOST), (1, 27, "ValueError: shapes do not match"))).findings
    causes = [(each.part, each.code, each.object) for each in found]
    assert causes[0] == ("cause", "crashed", "worker-2")
    assert causes[1] == ("follows", "lost_peer", "worker-1, worker-0")


def test_two_crashes_of_their_own_are_both_causes_the_first_one_first() -> None:
    found = judge(several((1, 5, "ValueError: a"), (1, 27, "ModuleNotFoundError: No module named 'x'"))).findings
    assert [(each.part, each.object) for each in found[:2]] == [("cause", "worker-1"), ("cause", "worker-0")]
    assert found[0].message == "its image lacks the Python module x"


def test_if_all_have_lost_a_peer_the_first_one_is_the_cause() -> None:
    found = judge(several((1, 5, LOST), (1, 27, LOST))).findings
    assert [(each.code, each.object) for each in found[:2]] == [("crashed", "worker-1"), ("lost_peer", "worker-0")]
