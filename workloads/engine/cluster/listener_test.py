"""Tests of the messages by which a server identifies itself to the chief."""

from __future__ import annotations

import json
import socket

import pytest

from engine.cluster.cluster_spec import parse
from engine.cluster.membership import Link, Listener, _Connection
from tests.trainings import processes

CPU = {"compute": "cpu", "gpu_allocated": 1}
GPU = {"compute": "gpu", "gpu_allocated": 2}


@pytest.fixture
def members():
    chief, ps, *workers = processes.addresses(4)
    return {"chief": [chief], "ps": [ps], "worker": workers}


@pytest.fixture
def calls(members):
    """Provide a chief without connections, and a function that sends it the words of a link."""
    listener = Listener(spec(members, "chief"), print, lambda: False)
    ours, theirs = socket.socketpair()

    def call(words):
        listener._understand(_Connection(ours, "127.0.0.1", 0.0), words.split())

    yield listener, call
    for each in (ours, theirs, listener._server):
        each.close()


def spec(members, role, index=0):
    return parse(json.dumps({"cluster": members, "task": {"type": role, "index": index}}))


def hello(members, role, index, device):
    return Link(spec(members, role, index), print, device)._hello.decode()


def test_workers_say_what_they_compute_on(calls, members):
    listener, call = calls
    assert listener.computes() == {}
    call(hello(members, "ps", 0, {}))
    call(hello(members, "worker", 0, GPU))
    assert listener.computes() == GPU
    call(hello(members, "worker", 1, CPU))
    assert listener.computes() == {"compute": "cpu", "gpu_allocated": 3}
    assert listener.missing() == []


def test_a_worker_that_was_replaced_may_have_found_its_gpu(calls, members):
    listener, call = calls
    for device in (CPU, GPU):
        call(hello(members, "worker", 0, device))
    assert listener.computes() == GPU


@pytest.mark.parametrize("words", ["hello worker 0 x tpu 1", "hello worker 0 x gpu", "hello worker 0 x gpu -1"])
def test_devices_in_other_words_are_no_hello(calls, words):
    listener, call = calls
    call(words)
    assert "worker 0" in listener.missing() and listener.computes() == {}
