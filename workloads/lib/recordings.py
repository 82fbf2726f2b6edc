"""Recordings in memory, in the form that a training needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import tensorflow as tf

from lib import log_mel, transcripts
from lib.manifests import Recording


@dataclass(frozen=True)
class Recordings:
    """One set of at least one recording."""

    each: Sequence[Recording]

    def tensors(self) -> tuple[tf.Tensor, ...]:
        """Return features, float32 [n, frames, BANDS], letters, int32 [n, letters], and the valid lengths of both,
        int32 [n].

        The operations read the files on the device that runs them.
        """
        sounds = [one.sound for one in self.each]
        frames = [log_mel.frames(sound.samples) for sound in sounds]
        longest = max(frames)

        def read(file: tuple[tf.Tensor, ...]) -> tf.Tensor:
            found = log_mel.read(*file)
            padded = tf.pad(found, [[0, longest - tf.shape(found)[0]], [0, 0]])
            return tf.ensure_shape(padded, [longest, log_mel.BANDS])

        files = [str(one.path) for one in self.each], [each.begin for each in sounds], [each.samples for each in sounds]
        features = tf.map_fn(read, tuple(map(tf.constant, files)), fn_output_signature=tf.float32)
        letters = [transcripts.numbers(one.transcript) for one in self.each]
        lengths = list(map(len, letters))
        padded = [row + [0] * (max(lengths) - len(row)) for row in letters]
        return features, tf.constant(padded), tf.constant(frames), tf.constant(lengths)

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the same as arrays, read once."""
        return tuple(tensor.numpy() for tensor in self.tensors())

    def error_rates(self, heard: np.ndarray) -> dict[str, float]:
        """Return the rates of `transcripts.error_rates`.

        :param heard: UTF-8, bytes [n].
        """
        said = (one.transcript for one in self.each)
        return transcripts.error_rates(zip(said, (text.decode() for text in heard), strict=True))
