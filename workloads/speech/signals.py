"""WAV files in the usual format for speech: PCM, 16 kHz, one channel of 16 bits (Microsoft and IBM, "Multimedia
Programming Interface and Data Specifications 1.0", section "Waveform Audio File Format").

Speech as a spectrogram: the logarithm of the energy in mel bands, every 10 ms.

Random small changes of recordings, different each time, so that a training learns the speech and not the speaker.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

RATE = 16_000
"""Samples per second."""
SAMPLE_BYTES = 2
_PCM, _EXTENSIBLE = 1, 0xFFFE
_FORMAT = "<HHIIHH"


@dataclass(frozen=True)
class Sound:
    """Position of the samples in a file.

    :param begin: their first byte.
    :param samples: number of samples.
    """

    begin: int
    samples: int


def sound(path: Path) -> Sound:
    """Find the samples of a file by its header.

    :raises ValueError: it is not such a file; the message is to be appended to its name.
    :raises OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        head = stream.read(12)
        if head[:4] != b"RIFF" or head[8:] != b"WAVE":
            raise ValueError("is not a WAV file")
        known = False
        while len(chunk := stream.read(8)) == 8:
            name, size = chunk[:4], int.from_bytes(chunk[4:], "little")
            begin = stream.tell()
            if name == b"fmt ":
                _require_speech(stream.read(size))
                known = True
            elif name == b"data" and known:
                return _checked(Sound(begin, size // SAMPLE_BYTES), path.stat().st_size)
            # Chunks of an odd length are followed by a padding byte.
            stream.seek(begin + size + size % 2)
    raise ValueError("is a WAV file without sound")


def _require_speech(header: bytes) -> None:
    if len(header) < struct.calcsize(_FORMAT):
        raise ValueError("is a WAV file with a damaged header")
    kind, channels, rate, _, _, bits = struct.unpack_from(_FORMAT, header)
    if kind not in (_PCM, _EXTENSIBLE):
        raise ValueError(f"is a WAV file of the encoding {kind}, not PCM")
    if (rate, channels, bits) != (RATE, 1, 8 * SAMPLE_BYTES):
        raise ValueError(f"has {rate} Hz, {channels} channels and {bits} bits, not {RATE} Hz, 1 and 16")


def _checked(found: Sound, size: int) -> Sound:
    if not found.samples:
        raise ValueError("is a WAV file without sound")
    missing = found.begin + found.samples * SAMPLE_BYTES - size
    if missing > 0:
        raise ValueError(f"is cut off: {missing} bytes of its sound are missing")
    return found


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
    bands = tf.signal.linear_to_mel_weight_matrix(BANDS, _FFT // 2 + 1, RATE, _LOWEST, _HIGHEST)
    magnitudes = tf.matmul(tf.abs(waves), bands)
    energies = tf.math.log(magnitudes + _FLOOR * tf.reduce_max(magnitudes) + _SILENCE)
    mean, variance = tf.nn.moments(energies, axes=[0])
    return (energies - mean) / tf.sqrt(variance + 1e-3)


def read(path: tf.Tensor, begin: tf.Tensor, samples: tf.Tensor) -> tf.Tensor:
    """Return the same for a file, by operations that read it on the device that runs them.

    :param begin: first byte of its samples; `samples` is their number: `wav.Sound`.
    """
    content = tf.strings.substr(tf.io.read_file(path), begin, samples * SAMPLE_BYTES)
    return log_mel(tf.io.decode_raw(content, tf.int16))


WARP = 1.25
"""Maximum factor by which a voice's frequencies are raised or lowered, as by another length of the vocal tract (Jaitly,
Hinton 2013, "Vocal Tract Length Perturbation (VTLP) improves speech recognition")."""
HIDDEN_BANDS, HIDDEN_FRAMES = 6, 8
"""Maximum size of a masked piece (Park et al. 2019, "SpecAugment", https://arxiv.org/abs/1904.08779)."""


def perturbed(features: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Return features with each recording warped, and with some bands and two pieces masked.

    :param features: float32 [n, frames, BANDS].
    :param seed: int64 [2]; the same seed gives the same changes.
    """
    count, frames = tf.unstack(tf.shape(features)[:2])
    most = math.log(WARP)
    warp = tf.exp(tf.random.stateless_uniform([count, 1], seed, -most, most))
    found = warped(features, warp)
    hidden = _some(seed + 1, count, BANDS, HIDDEN_BANDS)[:, tf.newaxis, :]
    for number in (2, 3):
        hidden |= _some(seed + number, count, frames, HIDDEN_FRAMES)[:, :, tf.newaxis]
    return tf.where(hidden, 0.0, found)


def warped(features: tf.Tensor, warp: tf.Tensor) -> tf.Tensor:
    """Return features whose band b has the content of band warp times b, interpolated between two bands.

    :param warp: float32 [n, 1].
    """
    places = tf.minimum(tf.range(BANDS, dtype=tf.float32) * warp, BANDS - 1.0)
    lower = tf.floor(places)
    part = (places - lower)[:, tf.newaxis, :]
    low = tf.cast(lower, tf.int32)
    high = tf.minimum(low + 1, BANDS - 1)
    one, other = (tf.gather(features, each, axis=2, batch_dims=1) for each in (low, high))
    return one + part * (other - one)


def _some(seed: tf.Tensor, count: tf.Tensor, size: tf.Tensor | int, most: int) -> tf.Tensor:
    """Return a mask of up to `most` consecutive places out of `size`, bool [count, size]."""
    width = tf.random.stateless_uniform([count, 1], seed, 0, most + 1, tf.int32)
    first = tf.random.stateless_uniform([count, 1], seed + 100, 0, size, tf.int32)
    places = tf.range(size)
    return (places >= first) & (places < first + width)
