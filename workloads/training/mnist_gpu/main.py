"""Entry point.

python -m training.mnist_gpu.main --data_dir /data --log_dir /logs --accuracy_bound 0.9
"""

from __future__ import annotations

import sys

from engine.main import main_alone
from engine.workload import Workload
from training.mnist_gpu.config import Config


def workload(config: Config) -> Workload:
    """Return the workload, with the model and the data of `mnist_ps`; imports TensorFlow."""
    from training.mnist_ps.data import mnist
    from training.mnist_ps.model import Classifier

    return Workload(
        config,
        model=lambda: Classifier(config.hidden_units, config.seed),
        data=mnist(config.data_dir),
        kind={"model": f"dense {config.hidden_units}"},
    )


if __name__ == "__main__":
    sys.exit(main_alone(Config, workload))
