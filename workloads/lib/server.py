"""The roles that only serve: ps and worker run whatever the chief sends them until they are told to stop."""

from __future__ import annotations

import os
from typing import NoReturn

from lib.cluster_spec import Cluster
from lib.control import Link
from lib.errors import ExitCode
from lib.preemption import Preemption


def serve(cluster: Cluster, preemption: Preemption) -> NoReturn:
    """Start TensorFlow's server on this task's port, call the chief, and serve for ever.

    :param preemption: asked to end, the process serves on until the chief lets it go, and exits with 42.
    """
    import tensorflow as tf

    server = tf.distribute.Server(
        cluster.tensorflow_spec(), job_name=cluster.role, task_index=cluster.index, protocol="grpc", start=True
    )
    link = Link(cluster)
    link.start()

    def leave() -> None:
        link.leave()
        os._exit(int(ExitCode.PREEMPTED))

    preemption.defer(leave)
    server.join()
    raise AssertionError("Server.join returned")
