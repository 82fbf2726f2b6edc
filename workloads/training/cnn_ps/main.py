"""Entry point.

TF_CONFIG=... python -m training.cnn_ps.main --train_steps 600 --accuracy_bound 0.96
"""

from __future__ import annotations

import sys

from engine.main import main
from engine.workload import Workload
from training.cnn_ps.config import Config


def workload(config: Config) -> Workload:
    """Return the workload for the engine; imports TensorFlow."""
    from training.cnn_ps.data import mnist
    from training.cnn_ps.model import ConvNet

    return Workload(
        config,
        model=lambda: ConvNet(config.dense_units, config.seed),
        data=mnist(config.data_dir),
        kind={"model": f"conv 32, conv 64, dense {config.dense_units}"},
    )


if __name__ == "__main__":
    sys.exit(main(Config, workload))
