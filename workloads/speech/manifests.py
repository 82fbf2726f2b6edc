"""Lists of recordings in the format of DeepSpeech: CSV files with file, bytes and transcript per line
(https://deepspeech.readthedocs.io/en/r0.9/TRAINING.html, "Common Voice training data").

Recordings in memory, in the form that a training needs.

Transcripts of recordings: their letters, and their distance from a recognised text.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import tensorflow as tf

from engine.errors import InputError
from speech import signals

LETTERS = " 'abcdefghijklmnopqrstuvwxyz"
"""All letters that a transcript may contain; the number of a letter is its index here."""


def numbers(transcript: str) -> list[int]:
    """Return the indices of a transcript's letters in `LETTERS`."""
    return [LETTERS.index(letter) for letter in transcript]


def strange(transcript: str) -> str:
    """Return the characters of a transcript that are not in `LETTERS`, each once."""
    return "".join(dict.fromkeys(letter for letter in transcript if letter not in LETTERS))


def distance(said: Sequence[object], heard: Sequence[object]) -> int:
    """Return the fewest insertions, deletions and replacements between two sequences (Levenshtein 1966)."""
    before = list(range(len(heard) + 1))
    for row, one in enumerate(said, 1):
        now = [row]
        for column, other in enumerate(heard, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (one != other)))
        before = now
    return before[-1]


def error_rates(pairs: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Return the total errors of many sentences per spoken letter (including spaces) and per spoken word.

    A rate exceeds 1 if more was recognised than spoken.

    :param pairs: spoken text, never empty, and recognised text.
    """
    wrong_letters = wrong_words = letters = words = 0
    for said, heard in pairs:
        wrong_letters += distance(said, heard)
        wrong_words += distance(said.split(), heard.split())
        letters += len(said)
        words += len(said.split())
    return {"character_error_rate": wrong_letters / letters, "word_error_rate": wrong_words / words}


COLUMNS = ("wav_filename", "wav_filesize", "transcript")
SHOWN = 50
"""Maximum number of faults that an error lists; it counts the others."""


@dataclass(frozen=True)
class Recording:
    """A file with speech, and its transcript."""

    path: Path
    sound: signals.Sound
    transcript: str


def read(lists: Sequence[Sequence[Path]], refused: Callable[[Recording], str] = lambda _: "") -> list[list[Recording]]:
    """Read several lists of manifests, and check every file that they name.

    File names are relative to the folder of their manifest.

    :param refused: returns why a valid recording cannot be used, or an empty string.
    :returns: the recordings of each list, in the order of its manifests.
    :raises InputError: names every fault of any of them.
    """
    known: dict[Path, list[Recording]] = {}
    faults: list[str] = []
    for manifest in dict.fromkeys(path for paths in lists for path in paths):
        known[manifest] = []
        for found in _read(manifest, refused):
            if isinstance(found, Recording):
                known[manifest].append(found)
            else:
                faults.append(f"{manifest}{found}")
    if faults:
        more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        raise InputError(
            f"The data has {len(faults)} faults: {'; '.join([*faults[:SHOWN], *more])}.",
            "Repair these files, or remove their lines from the manifests.",
        )
    return [[recording for path in paths for recording in known[path]] for paths in lists]


def _read(manifest: Path, refused: Callable[[Recording], str]) -> Iterator[Recording | str]:
    """Yield each line as a recording, or its fault as text to append to the manifest's path."""
    try:
        with manifest.open(encoding="utf-8", newline="") as stream:
            lines = csv.DictReader(stream)
            if missing := set(COLUMNS) - set(lines.fieldnames or ()):
                yield f" has no column {', '.join(sorted(missing))}"
                return
            empty = True
            for line in lines:
                empty = False
                for found in _look(manifest.parent, line, refused):
                    yield found if isinstance(found, Recording) else f" line {lines.line_num}: {found}"
            if empty:
                yield " names no recording"
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        yield f" cannot be read ({getattr(error, 'strerror', None) or error})"


def _look(folder: Path, line: dict[str, str | None], refused: Callable[[Recording], str]) -> Iterator[Recording | str]:
    name, size, transcript = (str(line[column] or "").strip() for column in COLUMNS)
    faults = []
    if not transcript:
        faults.append("there is no transcript")
    if wrong := strange(transcript):
        faults.append(f"the transcript has {wrong!r}, and letters are {LETTERS!r}")
    path = folder / name
    try:
        sound = signals.sound(path)
        bytes_there = path.stat().st_size
        if size != str(bytes_there):
            faults.append(f"{name} has {bytes_there} bytes, not {size or 'an unknown number'}")
        found = Recording(path, sound, transcript)
        if not faults and (why := refused(found)):
            faults.append(why)
        if not faults:
            yield found
    except ValueError as error:
        faults.append(f"{name} {error}")
    except OSError as error:
        faults.append(f"{name or 'a file without a name'} cannot be read ({error.strerror})")
    yield from faults


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
        frames = [signals.frames(sound.samples) for sound in sounds]
        longest = max(frames)

        def read(file: tuple[tf.Tensor, ...]) -> tf.Tensor:
            found = signals.read(*file)
            padded = tf.pad(found, [[0, longest - tf.shape(found)[0]], [0, 0]])
            return tf.ensure_shape(padded, [longest, signals.BANDS])

        files = [str(one.path) for one in self.each], [each.begin for each in sounds], [each.samples for each in sounds]
        features = tf.map_fn(read, tuple(map(tf.constant, files)), fn_output_signature=tf.float32)
        letters = [numbers(one.transcript) for one in self.each]
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
        return error_rates(zip(said, (text.decode() for text in heard), strict=True))
