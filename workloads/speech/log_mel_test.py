"""Tests of features: their number, their place in the spectrum, and their independence of loudness."""

from __future__ import annotations

import numpy as np
import pytest

from speech import signals
from tests.trainings import speech_samples

tf = pytest.importorskip("tensorflow")


def tone(hertz, loudness=8000):
    return np.int16(loudness * np.sin(2 * np.pi * hertz * np.arange(signals.RATE // 2) / signals.RATE))


def test_there_are_as_many_frames_as_promised():
    for samples in (400, 559, 560, 8000):
        assert signals.log_mel(np.ones(samples, np.int16)).shape == (signals.frames(samples), signals.BANDS)
    assert signals.frames(399) == 0


def test_a_higher_tone_is_in_a_higher_band():
    def band(*hertz):
        found = signals.log_mel(np.concatenate([tone(each) for each in hertz])).numpy()
        return [int(np.argmax(found[row])) for row in (10, 70)]

    low, high = band(300, 3000)
    assert low < high - 10


def test_loudness_does_not_count():
    noise = np.random.default_rng(0).normal(0, 3000, signals.RATE) * np.repeat([1.0, 0.5, 1.0, 0.1], signals.RATE // 4)
    loud, soft = (signals.log_mel(np.int16(noise * part)).numpy() for part in (1.0, 0.25))
    assert np.abs(loud - soft).mean() < 0.02
    assert np.abs(loud.mean(axis=0)).max() < 1e-3


def test_how_silent_a_pause_is_does_not_count():
    random = np.random.default_rng(0)
    speech = random.normal(0, 3000, signals.RATE) * np.repeat([0.0, 1.0, 0.0, 0.3], signals.RATE // 4)
    one, other = (signals.log_mel(np.int16(speech + random.normal(0, noise, signals.RATE))).numpy() for noise in (0, 4))
    assert np.abs(one - other).mean() < 0.05
    assert np.isfinite(signals.log_mel(np.zeros(signals.RATE, np.int16)).numpy()).all()


def test_a_file_gives_what_its_samples_give(tmp_path):
    samples = tone(440).tolist()
    path = tmp_path / "a.wav"
    speech_samples.write_wav(path, samples)
    found = signals.sound(path)
    read = signals.read(str(path), found.begin, found.samples).numpy()
    assert read == pytest.approx(signals.log_mel(np.array(samples, np.int16)).numpy(), abs=1e-6)
