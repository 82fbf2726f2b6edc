"""The roles that only serve: ps and worker run whatever the chief sends them until they are told to stop."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from lib.cluster_spec import Cluster
from lib.control import Link
from lib.errors import ExitCode
from lib.preemption import Preemption


def serve(cluster: Cluster, preemption: Preemption, device: Mapping[str, Any]) -> NoReturn:
    """Start TensorFlow's server on this task's port, call the chief, and serve for ever.

    :param preemption: asked to end, the process serves on until the chief lets it go, and exits with 42. So does, at
        once, a worker that was taken for lost: what it would go on with another one does.
    :param device: what a worker computes on; empty for a ps.
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
