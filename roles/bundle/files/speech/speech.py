#!/usr/bin/python3
"""Sentences of a small grammar, said by espeak-ng in four voices, as WAV files and the manifests that list them.

speech.py FOLDER

Three voices say the sentences to learn, and others for a second held-out set (dev); the fourth says what nobody else
says and is heard in no other set (test). Needs espeak-ng and sox; the same programs give the same bytes.
"""

from __future__ import annotations

import csv
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

RATE = 16_000
VOICES = {
    "anna": ("en-us+f1", 150, 60),
    "ben": ("en-gb+m3", 165, 45),
    "carl": ("en-gb-scotland+m7", 155, 35),
    "dora": ("en-gb-x-rp+f4", 160, 55),
}
"""Name -> voice and variant of espeak-ng, words per minute, pitch. None with breath: its noise differs each time."""
HELD_OUT = "dora"
TRAIN, DEV, TEST = 180, 12, 60
"""Sentences of each voice that is learnt, and of the one that is held out."""

SEED = 1
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
WHO = ["the farmer", "my sister", "a doctor", "the pilot", "our teacher", "the old king", "a quick fox", "his uncle"]
DOES = ["carries", "paints", "counts", "washes", "finds", "sells", "brings", "hides"]
WHAT = ["apples", "boxes", "horses", "letters", "jackets", "violins", "keys", "wagons"]
LIKE = ["red", "heavy", "small", "golden", "empty", "frozen", "broken", "quiet"]
WHERE = [
    "near the river",
    "in the morning",
    "for the queen",
    "on monday",
    "behind the zoo",
    "at noon",
    "by ship",
    "in july",
]


def sentences(count: int) -> list[str]:
    """So many different sentences, the same on every call."""
    choose = random.Random(SEED).choice
    found: dict[str, None] = {}
    while len(found) < count:
        things = f"{choose(NUMBERS)} {choose(LIKE)} {choose(WHAT)}"
        does = f"{choose(WHO)} {choose(DOES)}"
        forms = [f"{does} {things}", f"{things} {choose(WHERE)}", f"{does} {choose(WHAT)} {choose(WHERE)}"]
        found[choose(forms)] = None
    return list(found)


def plan() -> dict[str, list[tuple[str, str]]]:
    """Voice and sentence of each recording, by the set that it is in. No sentence is said twice."""
    learnt = [voice for voice in VOICES if voice != HELD_OUT]
    rest: Iterator[str] = iter(sentences((TRAIN + DEV) * len(learnt) + TEST))
    return {
        "train": [(voice, next(rest)) for _ in range(TRAIN) for voice in learnt],
        "dev": [(voice, next(rest)) for _ in range(DEV) for voice in learnt],
        "test": [(HELD_OUT, next(rest)) for _ in range(TEST)],
    }


def say(voice: str, sentence: str, path: Path) -> None:
    """Make one recording. The synthesizer has a rate of its own."""
    name, words, pitch = VOICES[voice]
    spoken = subprocess.run(
        ["espeak-ng", "-v", name, "-s", str(words), "-p", str(pitch), "--stdout", sentence],
        check=True,
        capture_output=True,
        timeout=60,
    ).stdout
    # Without dither, which is noise of another kind in each call.
    argv = ["sox", "-D", "-V1", "--ignore-length", "-t", "wav", "-", "-r", str(RATE), "-c", "1", "-b", "16", str(path)]
    subprocess.run(argv, input=spoken, check=True, timeout=60)


def write(folder: Path) -> None:
    """Make all recordings and their manifests."""
    (folder / "wav").mkdir(parents=True)
    for name, recordings in plan().items():
        lines = []
        for number, (voice, sentence) in enumerate(recordings):
            path = folder / "wav" / f"{name}-{number:03d}-{voice}.wav"
            say(voice, sentence, path)
            lines.append((str(path.relative_to(folder)), path.stat().st_size, sentence))
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerows([("wav_filename", "wav_filesize", "transcript"), *lines])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
