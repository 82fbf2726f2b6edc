"""Held-out evaluation on the chief."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from training.mnist_ps.model import Classifier, cross_entropy


def evaluate(model: Classifier, images: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Accuracy (0 to 1) and mean cross entropy (nats) over all given examples.

    :param images: uint8 [n, 784].
    :param labels: uint8 [n].
    """
    logits = model.logits(tf.constant(images))
    hits = np.argmax(logits.numpy(), axis=1) == labels
    return float(np.mean(hits)), float(cross_entropy(logits, tf.constant(labels)).numpy())
