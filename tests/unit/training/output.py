"""Ten thousand lines as programs print them, with events of ours in between."""

from __future__ import annotations

import json
import random

STEPS = 1_000
ODD = (
    b"plain words",
    b"\r  1/938 [....] - ETA: 5s\b\b\r938/938 [====] - 1s - loss: 0.3",
    b"\r\x1b[1m  1/100\x1b[0m [] 1s\b\b\r\x1b[1m100/100\x1b[0m [] 1s - accuracy: 0.9",
    b"\rstep 1 loss 0.9\rstep 2 loss 0.8\r",
    b"epoch done\x0cpage two\x0b\x1c\x1d\x1e",
    "a line\u2028and\u2029what\x85follows".encode(),
    b"bytes \xff\xfe\x80 \xc3( that are no text",
    b"a\x00b\x00",
    b"",
    b"2026-11-21T12:00:00.5Z a time of its own",
    b"300/300 {'loss': 0.3}",
    b'{"event": "step", "step": "no number"}',
    b"\x1b]52;c;ZXZpbA==\x07\x1b[2J",
    b"windows\r",
    bytes(each for each in range(256) if each != 10),
)


def program() -> list[tuple[int, bytes]]:
    """(nanoseconds, line) of each; several have the same time, and the last has no end."""
    chosen = random.Random(29)
    lines, now, step = [], 0, 0
    for number in range(10_000):
        now += chosen.choice((0, 0, 1, 1_000_000, 5_000_000))
        if number % 10 == 5:
            step += 1
            event = {"event": "step", "time": 1.0, "step": step, "loss": 0.5, "note": "here\u2028there\x85"}
            text = json.dumps(event, ensure_ascii=bool(step % 2)).encode()
            lines.append((now, chosen.choice((b"", b"\r203/300", b" ", b"\x0c", b"\r1/2\r2/2 [=]")) + text + b"\n"))
        else:
            lines.append((now, chosen.choice(ODD) + b"\n"))
    lines[4_000] = (lines[4_000][0], b"x" * 102_400 + b" end of the long line\n")
    lines[4_001] = (lines[4_001][0], b'{"event": "step", "step": 7, "fill": "' + b"y" * 2_000_000 + b'"}\n')
    ends = [{"event": "evaluate", "time": 2.0, "step": STEPS, "accuracy": 0.97}]
    ends.append({"event": "end", "time": 3.0, "step": STEPS, "result": "passed", "accuracy": 0.97})
    lines[-2:] = [(now, b"\r203/300" + json.dumps(ends[0]).encode() + b"\n"), (now, json.dumps(ends[1]).encode())]
    return lines
