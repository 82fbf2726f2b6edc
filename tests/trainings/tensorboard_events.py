"""Read a folder of events as TensorBoard does, for tests."""

from __future__ import annotations

from pathlib import Path


def shown(folder: Path) -> list[tuple[int, str, float]]:
    """Return step, name and value of each scalar. A START event discards earlier events of its step and later ones.

    See `_CheckForRestartAndMaybePurge` in tensorboard/backend/event_processing/plugin_event_accumulator.py.
    """
    import tensorflow as tf

    found: list[tuple[int, str, float]] = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            if event.session_log.status == event.session_log.START:
                found = [each for each in found if each[0] < event.step]
            found += [(event.step, value.tag, value.simple_value) for value in event.summary.value]
    return found
