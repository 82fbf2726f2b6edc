"""The flags and defaults of speech trainings; the common flags are in `engine.config`."""

from __future__ import annotations

from dataclasses import dataclass

import engine.config
from engine.config import COSINE, flag, other_default


def _some(files: str) -> bool:
    return all(name.strip() for name in files.split(","))


def _positive(number: int) -> bool:
    return number >= 1


_FILES = "comma-separated names of CSV files"


@dataclass(frozen=True)
class Config(engine.config.Config):
    """Speech on parameter servers: letters from recordings, with DeepSpeech's flags."""

    train_files: str = flag("train.csv", "manifests of the training set, in data_dir", _some, _FILES)
    dev_files: str = flag("dev.csv", "manifests of a second held-out set; its errors are reported", _some, _FILES)
    test_files: str = flag("test.csv", "manifests of the held-out set that is judged", _some, _FILES)
    train_steps: int = other_default("train_steps", 1500)
    batch_size: int = other_default("batch_size", 32, also="train_batch_size")
    dev_batch_size: int = flag(32, "recordings of dev_files judged at once", _positive, "1 or more")
    test_batch_size: int = flag(32, "recordings of test_files judged at once", _positive, "1 or more")
    learning_rate: float = other_default("learning_rate", 0.002)
    learning_rate_decay: str = other_default("learning_rate_decay", COSINE)
    report_every: int = other_default("report_every", 50)
    units: int = flag(128, "width of the layers", lambda n: 1 <= n <= 4096, "1 to 4096")
