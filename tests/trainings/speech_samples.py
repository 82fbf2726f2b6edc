"""Small sets of recordings for tests: each letter has its own tone, so that they are easy to learn."""

from __future__ import annotations

import csv
import math
import wave
from collections.abc import Sequence
from pathlib import Path

from speech import manifests, signals
from speech.manifests import COLUMNS

LETTER_SAMPLES = 1_920
"""120 ms: three times the step of the model."""


def write(folder: Path, sentences: Sequence[str], manifest: str) -> Path:
    """Write a recording for each sentence and their manifest, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, sentence in enumerate(sentences):
        path = folder / f"{Path(manifest).stem}-{number}.wav"
        write_wav(path, samples(sentence))
        lines.append((path.name, path.stat().st_size, sentence))
    with (folder / manifest).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *lines])
    return folder / manifest


def write_wav(path: Path, samples: Sequence[int]) -> None:
    """Write a file of 16-bit samples."""
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(signals.SAMPLE_BYTES)
        stream.setframerate(signals.RATE)
        stream.writeframes(b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples))


def samples(sentence: str) -> list[int]:
    """Return the samples of a sentence, with one tone per letter."""
    tones = [300 * 1.1 ** manifests.LETTERS.index(letter) for letter in sentence]
    times = [2 * math.pi * number / signals.RATE for number in range(LETTER_SAMPLES)]
    return [round(8000 * math.sin(hertz * time)) for hertz in tones for time in times]
