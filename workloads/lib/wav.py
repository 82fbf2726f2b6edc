"""WAV files in the usual format for speech: PCM, 16 kHz, one channel of 16 bits (Microsoft and IBM, "Multimedia
Programming Interface and Data Specifications 1.0", section "Waveform Audio File Format")."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

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
