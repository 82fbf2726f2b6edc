"""The roles that only serve: ps and worker run whatever the chief sends them until they are told to stop."""

from __future__ import annotations

from typing import NoReturn

from lib.cluster_spec import Cluster


def serve(cluster: Cluster) -> NoReturn:
    """Start TensorFlow's server on this task's port and stay in it for ever; `Preemption` ends the process."""
    import tensorflow as tf

    server = tf.distribute.Server(
        cluster.tensorflow_spec(), job_name=cluster.role, task_index=cluster.index, protocol="grpc", start=True
    )
    server.join()
    raise AssertionError("Server.join returned")
