"""Entry point: trains the same as `speech_ps`, in a single process.

python -m training.speech_gpu.main --train_files train.csv --dev_files dev.csv --test_files test.csv
"""

from __future__ import annotations

import sys

from engine.main import main_alone
from training.speech_gpu.config import Config
from training.speech_ps.main import workload

if __name__ == "__main__":
    sys.exit(main_alone(Config, workload))
