"""Entry point.

TF_CONFIG=... python -m training.speech_ps.main --train_files train.csv --dev_files dev.csv --test_files test.csv
"""

from __future__ import annotations

import sys

from engine.main import main
from engine.workload import Workload
from training.speech.config import Config


def workload(config: Config) -> Workload:
    """Return the workload for the engine; imports TensorFlow."""
    from training.speech.data import speech
    from training.speech.model import Letters

    data = speech(config)
    return Workload(
        config,
        model=lambda: Letters(config.units, config.seed),
        data=data,
        kind={"model": f"letters by convolutions, {config.units} units"},
        score=data.score,
    )


if __name__ == "__main__":
    sys.exit(main(Config, workload))
