"""The roles that only serve: ps and worker run whatever the chief sends them until they are told to stop."""

from __future__ import annotations

from typing import NoReturn

from lib.cluster_spec import Cluster
from lib.errors import InputError


def serve(cluster: Cluster) -> NoReturn:
    """Start TensorFlow's server on this task's port and stay in it for ever; `Preemption` ends the process.

    :raises InputError: the port cannot be bound.
    """
    import tensorflow as tf

    try:
        server = tf.distribute.Server(
            cluster.tensorflow_spec(), job_name=cluster.role, task_index=cluster.index, protocol="grpc", start=True
        )
    except tf.errors.UnknownError as error:
        raise InputError(
            f"The server of {cluster.role} {cluster.index} cannot start on {cluster.address}: {error.message}.",
            "Choose a free port.",
        ) from error
    server.join()
    raise AssertionError("Server.join returned")
