"""The flags: those of every training of speech, and those that every workload in a single process has."""

from __future__ import annotations

from dataclasses import dataclass

import engine.config
import training.speech.config


# In this order, so that the defaults are those of speech.
@dataclass(frozen=True)
class Config(training.speech.config.Config, engine.config.Alone):
    """Speech on one GPU: letters from recordings, by the flags that DeepSpeech has."""
