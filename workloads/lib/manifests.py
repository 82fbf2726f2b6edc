"""Lists of recordings in the format of DeepSpeech: CSV files with file, bytes and transcript per line
(https://deepspeech.readthedocs.io/en/r0.9/TRAINING.html, "Common Voice training data")."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lib import transcripts, wav
from lib.errors import InputError

COLUMNS = ("wav_filename", "wav_filesize", "transcript")
SHOWN = 50
"""Maximum number of faults that an error lists; it counts the others."""


@dataclass(frozen=True)
class Recording:
    """A file with speech, and its transcript."""

    path: Path
    sound: wav.Sound
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
    if wrong := transcripts.strange(transcript):
        faults.append(f"the transcript has {wrong!r}, and letters are {transcripts.LETTERS!r}")
    path = folder / name
    try:
        sound = wav.sound(path)
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
