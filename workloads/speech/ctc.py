"""Decode letters from per-step letter scores, without an alignment of steps to letters (CTC).

Graves et al. 2006, "Connectionist Temporal Classification", https://www.cs.toronto.edu/~graves/icml_2006.pdf.
"""

from __future__ import annotations

from itertools import pairwise

import tensorflow as tf

from speech.manifests import LETTERS

CLASSES = len(LETTERS) + 1
"""The letters, and last the blank."""


def steps_needed(transcript: str) -> int:
    """Return the fewest steps that can encode a transcript: one per letter, and a blank between equal neighbours."""
    return len(transcript) + sum(one == other for one, other in pairwise(transcript))


def losses(scores: tf.Tensor, steps: tf.Tensor, letters: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return the negative log-likelihood of each transcript under the scores, in nats, float32 [n].

    :param scores: logits, float32 [n, all steps, CLASSES].
    :param steps: number of steps of each example, int32 [n], at least `steps_needed`.
    :param letters: numbers of letters, int32 [n, all letters].
    :param lengths: number of letters of each example, int32 [n].
    """
    # TensorFlow has a dedicated operation for sparse labels; for dense ones it uses a loop, several times slower.
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
    """Return the greedy decoding: the best class of each step, with repeats merged and blanks removed.

    :returns: string [n].
    """
    ((numbers,), _) = tf.nn.ctc_greedy_decoder(tf.transpose(scores, [1, 0, 2]), steps, merge_repeated=True)
    dense = tf.sparse.to_dense(numbers, default_value=len(LETTERS))
    return tf.strings.reduce_join(tf.gather([*LETTERS, ""], dense), axis=1)
