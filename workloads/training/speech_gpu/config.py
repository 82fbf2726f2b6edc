"""The flags: those of every training of speech, with a GPU required as everywhere in a single process."""

from __future__ import annotations

from dataclasses import dataclass

import engine.config
import training.speech.config
from engine.config import other_default
from lib.devices import ALWAYS


@dataclass(frozen=True)
class Config(training.speech.config.Config, engine.config.Alone):
    """Speech on one GPU: letters from recordings, by the flags that DeepSpeech has."""

    train_steps: int = other_default("train_steps", 600)
    # The defaults of speech come before those of a single process, this one among them.
    require_gpu: str = other_default("require_gpu", ALWAYS)
