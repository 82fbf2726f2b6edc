"""A training in one process, on generated data, which reports its resources and its speed.

bare.py runs it in the cluster and as a plain process.
"""

import json
import os
import time

import tensorflow as tf

WARM_UP, STEPS, REPORT_EVERY, BATCH = 20, 1500, 100, 64
THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")


def report(event: str, **values: object) -> None:
    print(json.dumps({"event": event, "time": time.time(), **values}), flush=True)


def main() -> None:
    threads = {name: os.environ[name] for name in THREADS}
    report("start", cpus=sorted(os.sched_getaffinity(0)), threads=threads, tensorflow=tf.__version__)
    tf.random.set_seed(1)
    images, labels = tf.random.uniform([BATCH, 28, 28, 1]), tf.random.uniform([BATCH], maxval=10, dtype=tf.int32)
    kernels = [[3, 3, 1, 32], [3, 3, 32, 64], [5 * 5 * 64, 500], [500, 10]]
    weights = [tf.Variable(tf.random.normal(shape, stddev=0.03)) for shape in kernels]

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            hidden = images
            for kernel in weights[:2]:
                hidden = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(hidden, kernel, 1, "VALID")), 2, 2, "VALID")
            hidden = tf.nn.relu(tf.reshape(hidden, [BATCH, -1]) @ weights[2])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, hidden @ weights[3])
            loss = tf.reduce_mean(losses)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * gradient)
        return loss

    for _ in range(WARM_UP):
        step()
    begin = time.monotonic()
    for number in range(1, STEPS + 1):
        loss = float(step())
        if number % REPORT_EVERY == 0:
            rate = number / (time.monotonic() - begin)
            report("step", step=number, steps_total=STEPS, loss=loss, steps_per_second=rate)
    seconds = time.monotonic() - begin
    report("end", step=STEPS, result="passed", seconds=seconds, steps_per_second=STEPS / seconds)


if __name__ == "__main__":
    main()
