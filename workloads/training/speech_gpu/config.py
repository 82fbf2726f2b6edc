"""The flags of every speech training, with a GPU required by default, as in every single process."""

from __future__ import annotations

from dataclasses import dataclass

import engine.config
import training.speech.config
from engine.cluster.devices import ALWAYS
from engine.config import other_default


@dataclass(frozen=True)
class Config(training.speech.config.Config, engine.config.Alone):
    """Speech on one GPU: letters from recordings, with DeepSpeech's flags."""

    train_steps: int = other_default("train_steps", 600)
    # The defaults of speech take precedence over those of a single process, including this one.
    require_gpu: str = other_default("require_gpu", ALWAYS)
