"""A real registry on this machine, over TLS."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.unit.certificates import pair_file

PROGRAMS = pytest.mark.skipif(
    not (shutil.which("docker-registry") and shutil.which("skopeo")), reason="not installed: docker-registry, skopeo"
)


def free_port() -> int:
    """One below those that Linux gives to connections: between this and its use no program comes by it."""
    while True:
        with suppress(OSError), socket.create_server(("127.0.0.1", random.randrange(15_000, 30_000))) as probe:
            return int(probe.getsockname()[1])


@contextmanager
def running(tmp_path: Path, **settings: object) -> Iterator[tuple[str, str]]:
    """URL and certificate of a running registry with these settings beside the usual ones."""
    port, pair = free_port(), pair_file(tmp_path / "pair.pem")
    config = {
        "version": "0.1",
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "storage")}},
        "http": {"addr": f"127.0.0.1:{port}", "tls": {"certificate": str(pair), "key": str(pair)}},
        **settings,
    }
    (tmp_path / "config.yml").write_text(json.dumps(config))
    argv = ["docker-registry", "serve", str(tmp_path / "config.yml")]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 20
            while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < deadline:
                time.sleep(0.05)
            yield f"https://127.0.0.1:{port}", str(pair)
        finally:
            process.kill()
