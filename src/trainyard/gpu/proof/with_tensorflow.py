"""Compute with TensorFlow. A program of its own, for the Python that has TensorFlow: its last line is a JSON object.

python with_tensorflow.py product|all_reduce
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

SIZE = 1024
"""Rows and columns of the matrices."""
UNIT_ROUNDOFF = 2.0**-24
"""Of IEEE single precision, rounded to nearest."""
BYTES = 64 << 20
"""Size of the reduced tensor on each GPU: large enough for the links to be the limit."""
TIMES = 20


def product(tf: Any, devices: list[str]) -> dict[str, Any]:
    """Multiply two matrices on the CPU and on each device, and compare.

    :param devices: such as `/GPU:0`.
    :returns: `worst`, the largest error of any device as a multiple of the permitted one. Each side may err by n u |A|
        |B| element by element (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 3.5), so two sides
        may differ by twice that. `wrong` are the devices beyond it.
    """
    # Tensor cores would round the factors to 10 bits, which this bound does not permit.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    tf.config.set_soft_device_placement(False)
    with tf.device("/CPU:0"):
        one, other = (tf.random.stateless_normal((SIZE, SIZE), (1, seed)) for seed in (1, 2))
        expected = tf.linalg.matmul(one, other)
        bound = 2 * SIZE * UNIT_ROUNDOFF * tf.linalg.matmul(tf.abs(one), tf.abs(other))
    errors = {}
    for device in devices:
        with tf.device(device):
            found = tf.linalg.matmul(tf.identity(one), tf.identity(other))
        if not found.device.endswith(device.lstrip("/")):
            raise RuntimeError(f"the product of {device} was computed on {found.device}")
        with tf.device("/CPU:0"):
            errors[device] = float(tf.reduce_max(tf.abs(tf.identity(found) - expected) / bound))
    # A comparison with not-a-number is false, so it is wrong, too.
    return {"worst": max(errors.values()), "wrong": [device for device, error in errors.items() if not error <= 1]}


def all_reduce(tf: Any, devices: list[str], operations: Any) -> dict[str, Any]:
    """Add a tensor of each device on all devices, and measure.

    :param devices: at least two.
    :param operations: a `tf.distribute.CrossDeviceOps`.
    :returns: `wrong` are the devices with another sum, `bytes` the size of a tensor, `seconds` the time of one
        reduction, `gb_per_s` the bus bandwidth 2 (n - 1) / n x bytes / seconds in 10^9 bytes per second
        (nccl-tests, doc/PERFORMANCE.md).
    """
    strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=operations)
    count = strategy.num_replicas_in_sync

    def value(context: Any) -> Any:
        return tf.fill((BYTES // 4,), tf.cast(context.replica_id_in_sync_group + 1, tf.float32))

    values = strategy.experimental_distribute_values_from_function(value)

    @tf.function
    def reduce(tensors: Any) -> Any:
        return strategy.run(lambda each: tf.distribute.get_replica_context().all_reduce("SUM", each), args=(tensors,))

    def finish(results: Any) -> list[bool]:
        expected = count * (count + 1) / 2
        return [bool(tf.reduce_all(each == expected)) for each in strategy.experimental_local_results(results)]

    right = finish(reduce(values))
    started = time.perf_counter()
    for _ in range(TIMES):
        results = reduce(values)
    right = [one and other for one, other in zip(right, finish(results))]  # noqa: B905 - one of each replica
    seconds = (time.perf_counter() - started) / TIMES
    wrong = [number for number, each in enumerate(right) if not each]
    rate = 2 * (count - 1) / count * BYTES / seconds / 1e9
    return {"wrong": wrong, "bytes": BYTES, "seconds": seconds, "gb_per_s": rate}


def main(name: str) -> None:
    """Print the devices that TensorFlow finds, and the results of a computation on its GPUs."""
    try:
        tf = importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": str(error)}))
        return
    gpus = tf.config.list_physical_devices("GPU")
    found: dict[str, Any] = {
        "version": tf.__version__,
        "cuda": tf.sysconfig.get_build_info().get("cuda_version") or "",
        "gpus": [tf.config.experimental.get_device_details(each).get("device_name", each.name) for each in gpus],
    }
    devices = [f"/GPU:{number}" for number in range(len(gpus))]
    if devices and name == "product":
        found |= product(tf, devices)
    if len(devices) > 1 and name == "all_reduce":
        found |= all_reduce(tf, devices, tf.distribute.NcclAllReduce())
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
