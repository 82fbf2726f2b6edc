"""Letters from a score of each letter at each step, without being told which step belongs to which letter: Graves et
al. 2006, "Connectionist Temporal Classification", https://www.cs.toronto.edu/~graves/icml_2006.pdf."""

from __future__ import annotations

from itertools import pairwise

import tensorflow as tf

from lib.transcripts import LETTERS

CLASSES = len(LETTERS) + 1
"""The letters, and last the blank, which stands for none of them."""


def steps_needed(transcript: str) -> int:
    """The fewest steps that can say a transcript: one a letter, and a blank between two that are the same."""
    return len(transcript) + sum(one == other for one, other in pairwise(transcript))


def losses(scores: tf.Tensor, steps: tf.Tensor, letters: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """How improbable each transcript is by the scores, in nats, float32 [n].

    :param scores: logits, float32 [n, all steps, CLASSES].
    :param steps: how many of them belong to each example, int32 [n], at least `steps_needed`.
    :param letters: numbers of letters, int32 [n, all letters].
    :param lengths: how many of them belong to each example, int32 [n].
    """
    # Sparse labels have an operation of their own; for dense ones TensorFlow computes in a loop, several times slower.
    ragged = tf.RaggedTensor.from_tensor(letters, lengths)
    return tf.nn.ctc_loss(
        labels=ragged.to_sparse(),
        logits=scores,
        label_length=None,
        logit_length=steps,
        logits_time_major=False,
        blank_index=-1,
    )


def texts(scores: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
    """What the best class of each step says, one after the other: repeats are one letter, blanks none.

    :returns: string [n].
    """
    ((numbers,), _) = tf.nn.ctc_greedy_decoder(tf.transpose(scores, [1, 0, 2]), steps, merge_repeated=True)
    dense = tf.sparse.to_dense(numbers, default_value=len(LETTERS))
    return tf.strings.reduce_join(tf.gather([*LETTERS, ""], dense), axis=1)
