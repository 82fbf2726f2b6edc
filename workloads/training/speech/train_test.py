"""Tests of some steps in this process, on tones instead of letters."""

import numpy as np
import pytest

from tests.trainings import speech_samples
from training.speech.config import Config
from training.speech_ps.main import workload

tf = pytest.importorskip("tensorflow")
from engine.loop.evaluate import evaluate  # noqa: E402
from engine.loop.optimizer import Adam  # noqa: E402
from engine.loop.step import Counters, make_train_call  # noqa: E402

SENTENCES = {"train": ["abc", "cab", "bca", "a cab", "b", "ca", "c ab", "bac"], "dev": ["ac", "b a"], "test": ["cba"]}


@pytest.fixture
def speech(tmp_path):
    for name, sentences in SENTENCES.items():
        speech_samples.write(tmp_path, sentences, f"{name}.csv")
    return workload(Config(data_dir=tmp_path, batch_size=4, units=32))


def test_what_is_behind_the_end_changes_nothing(speech):
    model = speech.model()
    features, _, frames, _ = next(speech.data.held_out(1))
    alone = model.logits(features, frames).numpy()[0]
    both = model.logits(np.pad(features, [[0, 1], [0, 50], [0, 0]]), np.append(frames, frames + 50)).numpy()
    assert both[0, : len(alone)] == pytest.approx(alone, abs=1e-4)


def test_it_learns_letters(speech):
    model = speech.model()
    adam = Adam(model.parameters(), tf.distribute.get_strategy(), speech.config.learning_rate)
    train_call = make_train_call(speech, model, adam, Counters(lanes=1))
    before = evaluate(model, speech.data, list, speech.score)
    train_call(iter(speech.data.source()), *(tf.constant(number, tf.int64) for number in (0, 0, 80)))
    after = evaluate(model, speech.data, list, speech.score)
    assert after.loss < before.loss / 4 and after.examples == 1
    assert after.accuracy == 1 - after.more["character_error_rate"] > 0.6
    assert after.more["dev_character_error_rate"] < before.more["dev_character_error_rate"] / 2
    sound = speech_samples.samples("cab")
    assert set(model.serve(tf.constant(sound, tf.int16))["text"].numpy().decode()) <= set("abc ")
