"""The serving roles: ps and worker run the chief's requests until they receive SIGTERM."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from engine.cluster.cluster_spec import Cluster
from engine.cluster.membership import Link
from engine.cluster.preemption import Preemption
from engine.errors import ExitCode


def serve(cluster: Cluster, preemption: Preemption, device: Mapping[str, Any]) -> NoReturn:
    """Start TensorFlow's server on this task's port, connect to the chief, and serve for ever.

    :param preemption: after a request to end, the process serves until the chief releases it, and exits with 42. A
        worker that was declared lost exits with 42 at once, because another worker has taken over its steps.
    :param device: device that a worker computes on; empty for a ps.
    """
    import tensorflow as tf

    server = tf.distribute.Server(
        cluster.tensorflow_spec(), job_name=cluster.role, task_index=cluster.index, protocol="grpc", start=True
    )

    def given_up() -> None:
        print("The chief gave this worker's steps to another while it was silent.", file=sys.stderr, flush=True)
        os._exit(int(ExitCode.PREEMPTED))

    link = Link(cluster, given_up, device)
    link.start()

    def leave() -> None:
        link.leave()
        os._exit(int(ExitCode.PREEMPTED))

    preemption.defer(leave)
    server.join()
    raise AssertionError("Server.join returned")
