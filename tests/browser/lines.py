"""What a chief says, as a training that learns."""

from __future__ import annotations

import json
import math

from tests.browser.world import Object

TOTAL, EVERY = 2000, 20


def step(number: int, time: float) -> Object:
    """A line of a chief about a step: a loss that falls and trembles."""
    loss = 2.1 * math.exp(-number / 420) + 0.14 + 0.05 * math.sin(number / 9) * math.exp(-number / 900)
    rate = 118 + 7 * math.sin(number / 130)
    return {
        "event": "step",
        "time": time,
        "step": number,
        "steps_total": TOTAL,
        "loss": round(loss, 6),
        "steps_per_second": round(rate, 3),
    }


def evaluate(number: int, time: float) -> Object:
    accuracy = round(0.975 - 0.6 * math.exp(-number / 260), 6)
    return {"event": "evaluate", "time": time, "step": number, "accuracy": accuracy}


def chief_log(until: int, time: float) -> str:
    """The lines of a chief up to a step."""
    lines: list[Object] = [{"event": "start", "time": time - 60, "role": "chief"}]
    lines.append({"event": "device", "time": time - 50, "compute": "cpu", "gpu_allocated": 0})
    for number in range(EVERY, until + 1, EVERY):
        at = round(time - (until - number) / 118, 3)
        lines.append(step(number, at))
        if number % 200 == 0:
            lines += [{"event": "checkpoint", "time": at, "step": number}, evaluate(number, at)]
    return "I0000 00:00:00.000000 1 port.cc:153] oneDNN custom operations are on.\n" + "".join(
        f"{json.dumps(each)}\n" for each in lines
    )
