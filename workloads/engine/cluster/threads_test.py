"""Tests that TensorFlow takes its number of threads from the environment, which holds the pod's CPU limit."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.trainings import processes

pytest.importorskip("tensorflow")

PROGRAM = """
import os, sys
import tensorflow as tf
tf.distribute.Server(tf.train.ClusterSpec({"worker": [sys.argv[1]]}), job_name="worker", task_index=0)
tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)))(tf.ones([64, 64]))
names = [open(f"/proc/self/task/{each}/comm").read().strip() for each in os.listdir("/proc/self/task")]
print(names.count("tf_Compute"), len(names))
"""


def threads(count: int) -> tuple[int, int]:
    """Return the number of computing threads, and of all threads, of a process whose TensorFlow server has computed."""
    names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM, *processes.addresses(1)],
        env={**os.environ, **dict.fromkeys(names, str(count)), "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
        text=True,
    ).stdout
    computing, all_of_them = output.split()
    return int(computing), int(all_of_them)


@pytest.mark.slow
def test_threads_follow_the_environment():
    (one, few), (nine, many) = threads(1), threads(9)
    # The server and the process's own runtime each have a pool; the operations' own pool has one thread per extra step.
    assert (one, nine) == (2, 18)
    assert many - few >= 16 + 8
