"""What the chief does around its loop."""

import gc
import weakref

import pytest

from lib.errors import ExitCode

pytest.importorskip("tensorflow")
from engine import sample, train
from engine.config import Config
from lib.metrics import MetricsLog
from lib.watchdog import Watchdog


class Cluster:
    def peers(self, *_):
        return {}


class Told:
    """A preemption that has come."""

    requested = True

    def defer(self, _):
        pass


class Listener:
    def missing(self):
        return []


def test_what_tensorflow_holds_is_not_let_go_before_the_process_ends(monkeypatch):
    made = []

    class Training:
        finished = False

        def __init__(self, *_):
            made.append(weakref.ref(self))

        def restore(self):
            pass

        def loop(self, _):
            pass

        def save(self):
            pass

    monkeypatch.setattr(train, "_Training", Training)
    workload, watchdog = sample.workload(Config()), Watchdog(60, print)
    code = train.train(workload, Cluster(), MetricsLog(), watchdog, Told(), Listener(), None, 0.0)
    gc.collect()
    assert code == ExitCode.PREEMPTED
    assert [each() is not None for each in made] == [True]
