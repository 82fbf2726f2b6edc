"""Entry point.

TF_CONFIG=... python -m training.mnist_ps.main --train_steps 2000 --accuracy_bound 0.9
"""

from __future__ import annotations

import sys

from engine.main import main
from engine.workload import Workload
from training.mnist_ps.config import Config


def workload(config: Config) -> Workload:
    """Return the workload for the engine; imports TensorFlow."""
    from training.mnist_ps.data import mnist
    from training.mnist_ps.model import Classifier

    return Workload(
        config,
        model=lambda: Classifier(config.hidden_units, config.seed),
        data=mnist(config.data_dir),
        kind={"model": f"dense {config.hidden_units}"},
    )


if __name__ == "__main__":
    sys.exit(main(Config, workload))
