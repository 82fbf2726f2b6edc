import os

import tensorflow as tf

weight = tf.Variable(0.0)
with tf.GradientTape() as tape:
    loss = (weight - 3.0) ** 2
weight.assign_sub(0.5 * tape.gradient(loss, weight))
with open("kept.txt", "w", encoding="utf-8") as stream:
    stream.write(os.getcwd())
print(f"{tf.__version__} weight {float(weight)} in {os.getcwd()}")
