"""Where the console and TensorBoards find each other: two ports, by a node port or by a port-forward."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.console.app import Console
from trainyard.console.console_config import Config

PORTS = {
    ("console_origin", "site:30444"): "https://site:30443",
    ("console_origin", "localhost:8444"): "https://localhost:8443",
    ("tensorboard_origin", "site:30443"): "https://site:30444",
    ("tensorboard_origin", "localhost:8443"): "https://localhost:8444",
    ("tensorboard_origin", "[::1]:30443"): "https://[::1]:30444",
    ("tensorboard_origin", "site"): "https://site:30444",
}


@pytest.mark.parametrize(("which", "host"), PORTS)
def test_the_other_port_is_found_by_node_port_and_by_port_forward(which: str, host: str, tmp_path: Path) -> None:
    config = Config("https://a", tmp_path, tmp_path, public_port=30443, public_tensorboard_port=30444)
    console = Console(config, None, None)  # type: ignore[arg-type]
    assert getattr(console, which)(host) == PORTS[which, host]
