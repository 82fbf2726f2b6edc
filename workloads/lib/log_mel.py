"""Speech as a spectrogram: the logarithm of the energy in mel bands, every 10 ms."""

from __future__ import annotations

import tensorflow as tf

from lib import wav

BANDS = 40
_WINDOW, _HOP, _FFT = 400, 160, 512
"""Samples: 25 ms, 10 ms, and the padded length of a window."""
_LOWEST, _HIGHEST = 60.0, 7600.0
_FLOOR = 10 ** (-50 / 20)
"""Energy 50 dB below the loudest counts as silence. The noise in a pause depends on room and device, and the logarithm
of a noiseless pause would outweigh the speech."""
_SILENCE = 1e-6
"""Keeps the logarithm of zero finite; samples are at most 1.0."""


def frames(samples: int) -> int:
    """Return the number of windows of a recording."""
    return max(0, 1 + (samples - _WINDOW) // _HOP)


def log_mel(samples: tf.Tensor) -> tf.Tensor:
    """Return the bands, each normalised to mean 0 and variance 1 over the recording.

    Loudness and room then have little influence.

    :param samples: int16 [samples] of one recording.
    :returns: float32 [frames(samples), BANDS].
    """
    waves = tf.signal.stft(tf.cast(samples, tf.float32) / 32768.0, _WINDOW, _HOP, _FFT)
    bands = tf.signal.linear_to_mel_weight_matrix(BANDS, _FFT // 2 + 1, wav.RATE, _LOWEST, _HIGHEST)
    magnitudes = tf.matmul(tf.abs(waves), bands)
    energies = tf.math.log(magnitudes + _FLOOR * tf.reduce_max(magnitudes) + _SILENCE)
    mean, variance = tf.nn.moments(energies, axes=[0])
    return (energies - mean) / tf.sqrt(variance + 1e-3)


def read(path: tf.Tensor, begin: tf.Tensor, samples: tf.Tensor) -> tf.Tensor:
    """Return the same for a file, by operations that read it on the device that runs them.

    :param begin: first byte of its samples; `samples` is their number: `wav.Sound`.
    """
    content = tf.strings.substr(tf.io.read_file(path), begin, samples * wav.SAMPLE_BYTES)
    return log_mel(tf.io.decode_raw(content, tf.int16))
