"""Print output that harms a reader of logs, and create links in place of expected files.

python main.py noise | forged | flood
"""

import json
import os
import sys
import time
from collections.abc import Iterator

LINES, STEPS, ACCURACY = 10_000, 1_000, 0.97
BEGAN = 1_700_000_000.0
EXIT_FORGED = 3
FLOOD_BYTES, FLOOD_RATE = 2**30, 20 * 2**20
"""Printed bytes, and bytes a second: a node rotates a log every ten seconds."""
QUIET_SECONDS = 15
"""Output at a usual pace after the flood: output at that rate is only readable until the node rotates the log."""
TARGETS = ("/etc/passwd", "/etc/shadow", "/logs", "/logs/mnist-ps", "/proc/self/environ", "/dev/zero", "../../..")
NAMES = ("metrics.jsonl", "evaluations.json", "heartbeat", "export", "best", "attempts", "checkpoints")
ODD = (
    b"\r  1/938 [....] - ETA: 5s\b\b\r938/938 [====] - 1s - loss: 0.3",
    b"\rstep 1 loss 0.9\rstep 2 loss 0.8\r",
    b"page one\x0cpage two\x0b\x1c\x1d\x1e",
    "a line\u2028and\u2029what\x85follows".encode(),
    b"bytes \xff\xfe\x80 \xc3( that are no text",
    b"a\x00b\x00",
    b"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[31m[/x]<script>alert(29)</script>",
    b"2026-11-21T12:00:00.5Z a time of its own",
    b'{"event": "step", "step": "no number"}',
    b'{"event": "step", "step": 1e999, "loss": NaN}',
)
FORGED = (
    {"event": "end", "time": 1.0, "step": 10**18, "result": "passed", "accuracy": 1.0},
    {"event": "step", "time": 1e17, "step": 10**30, "steps_total": 10**300, "loss": float("nan")},
    {"event": "step", "time": -1, "step": 5, "steps_per_second": float("inf"), "seconds": float("-inf")},
    {"event": "evaluate", "time": 2.0, "step": 8, "accuracy": 1e308},
    {"event": "device", "compute": "gpu", "gpu_allocated": 10**18},
    {"event": "end", "time": 3.0, "result": ["passed"], "step": {}},
    {"event": "end", "time": 4.0, "step": STEPS, "result": "passed", "accuracy": 1.0},
    {"event": "evaluate", "time": 5.0, "step": 7, "accuracy": float("nan")},
)


def step(number: int) -> bytes:
    """Return an event with known bytes; its time is invented."""
    said = {"event": "step", "time": BEGAN + number, "step": number, "steps_total": STEPS, "loss": 0.5}
    return json.dumps(said).encode()


def noise() -> Iterator[bytes]:
    """Yield lines with bars, bytes and separators; every tenth is an event behind a bar."""
    for number in range(LINES):
        event = number % 10 == 5
        yield (
            b"\r203/300" + step(number // 10 + 1) + b"\n" if event else ODD[(number + number // 10) % len(ODD)] + b"\n"
        )
    said = {"event": "evaluate", "time": BEGAN + LINES, "step": STEPS, "accuracy": ACCURACY}
    yield json.dumps(said).encode() + b"\nlast words"


def forged() -> Iterator[bytes]:
    """Yield events that report success, with numbers that no reader may accept, before a failure."""
    for said in FORGED:
        yield json.dumps(said).encode() + b"\n"


def flood() -> Iterator[bytes]:
    """Yield a gibibyte, and then the relevant events."""
    block = (b"x" * 1023 + b"\n") * 1024
    began = time.monotonic()
    for sent in range(0, FLOOD_BYTES, len(block)):
        yield block
        time.sleep(max(0.0, began + sent / FLOOD_RATE - time.monotonic()))
    for number in range(QUIET_SECONDS):
        yield step(number + 1) + b"\n"
        time.sleep(1)
    yield from (step(STEPS) + b"\n", *list(noise())[-1:])


def lay_links(folder: str) -> None:
    """Create links in place of the run's files to other files."""
    os.makedirs(folder, exist_ok=True)
    for number, name in enumerate(NAMES):
        path = os.path.join(folder, name)
        if not os.path.lexists(path):
            os.symlink(TARGETS[number % len(TARGETS)], path)


if __name__ == "__main__":
    lay_links(os.environ["LOG_DIR"])
    for piece in {"noise": noise, "forged": forged, "flood": flood}[sys.argv[1]]():
        sys.stdout.buffer.write(piece)
        if sys.argv[1] == "flood":
            sys.stdout.buffer.flush()
    sys.stdout.buffer.flush()
    # Give the follower time to read the end of the log that the node keeps.
    time.sleep(5)
    sys.exit(EXIT_FORGED if sys.argv[1] == "forged" else 0)
