"""A line fitted by gradient descent: its variables on the parameter servers, its gradients on the workers."""

import json
import os
import time

import tensorflow as tf

STEPS = 60


def report(event: str, **values: object) -> None:
    print(json.dumps({"event": event, "time": time.time(), **values}), flush=True)


def main() -> None:
    cluster = json.loads(os.environ["CLUSTER_CONFIG"])
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(cluster), job_name="worker", task_index=0)
    servers = [f"/job:ps/task:{index}" for index in range(len(cluster["ps"]))]
    helpers = [f"/job:worker/task:{index}" for index in range(1, len(cluster["worker"]))]
    with tf.device(servers[0]):
        slope = tf.Variable(0.0)
    with tf.device(servers[-1]):
        offset = tf.Variable(0.0)

    x = tf.linspace(-1.0, 1.0, 64)
    y = 3.0 * x + 1.0
    begin = time.monotonic()
    for step in range(1, STEPS + 1):
        with tf.device(helpers[step % len(helpers)]):
            error = slope * x + offset - y
            loss = tf.reduce_mean(error**2)
            gradients = (tf.reduce_mean(2 * error * x), tf.reduce_mean(2 * error))
        for variable, gradient in zip((slope, offset), gradients, strict=True):
            with tf.device(variable.device):
                variable.assign_sub(0.5 * gradient)
        if step % 10 == 0:
            speed = step / (time.monotonic() - begin)
            report("step", step=step, steps_total=STEPS, loss=float(loss), steps_per_second=speed)
    print(f"slope on {slope.device}, gradients on {loss.device}", flush=True)
    report("end", result="passed" if float(loss) < 0.01 else "failed", step=STEPS, seconds=time.monotonic() - begin)


if __name__ == "__main__":
    main()
