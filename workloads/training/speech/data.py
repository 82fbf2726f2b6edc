"""Recordings from manifests, in memory as features; 16 kHz, one channel, 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from speech import ctc, manifests, signals
from speech.manifests import Recording, Recordings
from speech.signals import perturbed

from engine.data.memory import InMemory, in_batches
from engine.loop.evaluate import Score
from training.speech.config import Config
from training.speech.model import steps_of


@dataclass(frozen=True)
class Speech(InMemory):
    """A data set with two held-out sets, one after the other: the judged one, and a second one."""

    test: Recordings
    dev: Recordings
    batch_sizes: tuple[int, int]
    seed: int

    def batches(
        self, element: Any, first: tf.Tensor, end: tf.Tensor, numbers: Callable[[tf.Tensor], tf.Tensor]
    ) -> Callable[[tf.Tensor], tuple[tf.Tensor, ...]]:
        batch = super().batches(element, first, end, numbers)

        def changed(step: tf.Tensor) -> tuple[tf.Tensor, ...]:
            features, *rest = batch(step)
            return perturbed(features, tf.stack([self.seed, step])), *rest

        return changed

    def held_out(self, size: int) -> Iterator[tuple[np.ndarray, ...]]:
        for recordings, most in zip((self.test, self.dev), self.batch_sizes, strict=True):
            yield from in_batches(recordings.arrays, min(size, most))

    def score(self, heard: np.ndarray, losses: np.ndarray) -> Score:
        """Return the score. The accuracy is the share of correct letters: 1 minus the error rate, at least 0."""
        count = len(self.test.each)
        rates = self.test.error_rates(heard[:count])
        more = {f"dev_{name}": rate for name, rate in self.dev.error_rates(heard[count:]).items()}
        accuracy = max(0.0, 1.0 - rates["character_error_rate"])
        return Score(accuracy, float(np.mean(losses[:count])), count, {**rates, **more})


def speech(config: Config) -> Speech:
    """Return the three sets.

    :raises InputError: names all missing or invalid manifests and files.
    """
    lists = [
        [config.data_dir / name.strip() for name in files.split(",")]
        for files in (config.train_files, config.dev_files, config.test_files)
    ]
    training, dev, test = map(Recordings, manifests.read(lists, _too_short))
    files = [path for paths in lists for path in paths]
    files += [one.path for recordings in (training, dev, test) for one in recordings.each]
    return Speech(
        count=len(training.each),
        load=training.tensors,
        load_held_out=lambda: test.arrays,
        files=list(dict.fromkeys(files)),
        test=test,
        dev=dev,
        batch_sizes=(config.test_batch_size, config.dev_batch_size),
        seed=config.seed,
    )


def _too_short(one: Recording) -> str:
    there, needed = steps_of(signals.frames(one.sound.samples)), ctc.steps_needed(one.transcript)
    return f"{one.path.name} is too short for its transcript: {there} steps, {needed} needed" if there < needed else ""
