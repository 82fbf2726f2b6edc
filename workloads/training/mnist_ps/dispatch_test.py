"""Every step is handed out exactly once, whatever the boundaries."""

import pytest

from training.mnist_ps.dispatch import Dispatcher


def drive(dispatcher: Dispatcher, limit: int = 10_000) -> list[tuple[int, int]]:
    """Run to the end as the chief does: fill, collect one, pass barriers. Returns (first, count) of every call."""
    calls = []
    for _ in range(limit):
        while call := dispatcher.next_call():
            assert call.lane not in {other.lane for other in dispatcher.pending}
            dispatcher.handed(call)
            calls.append((call.first, call.count))
        if dispatcher.pending:
            dispatcher.collect()
        elif dispatcher.at_barrier and not dispatcher.finished:
            dispatcher.pass_barrier()
        else:
            return calls
    raise AssertionError("does not end")


@pytest.mark.parametrize(
    ("start", "target", "limit", "lanes", "boundaries", "barrier"),
    [
        (0, 200, 10, 6, (20,), 200),
        (0, 57, 10, 6, (10,), 25),
        (57, 157, 10, 6, (10,), 25),
        (200, 400, 10, 6, (20,), 200),
        (0, 7, 10, 1, (), 0),
        (0, 1000, 64, 3, (7, 0), 30),
        (5, 5, 10, 6, (20,), 200),
        (9, 5, 10, 6, (20,), 200),
    ],
)
def test_every_step_once(start, target, limit, lanes, boundaries, barrier):
    dispatcher = Dispatcher(start, target, limit, lanes, boundaries, barrier)
    calls = drive(dispatcher)
    steps = [step for first, count in calls for step in range(first, first + count)]
    assert steps == list(range(start, target))
    assert dispatcher.finished
    for first, count in calls:
        assert 1 <= count <= limit
        for every in (*boundaries, barrier):
            assert not every or first // every == (first + count - 1) // every


def test_a_barrier_waits_for_every_call():
    dispatcher = Dispatcher(0, 0, 10, 6, (), 20)
    dispatcher.pass_barrier()
    for _ in range(2):
        dispatcher.handed(dispatcher.next_call())
    assert dispatcher.next_call() is None
    dispatcher.collect()
    assert not dispatcher.at_barrier
    dispatcher.collect()
    assert dispatcher.at_barrier and dispatcher.collected == 20
    dispatcher.pass_barrier()
    assert dispatcher.next_call().first == 20
