"""Tests of a cluster process before it serves."""

import json
import time

import pytest

from engine.cluster import devices
from engine.config import Config
from tests.trainings import processes

pytest.importorskip("tensorflow")
from engine import program
from engine.cluster import server
from tests.trainings import sample


class Unasked:
    """A substitute for `Preemption`, which would block this process's signals permanently."""

    requested = False

    def defer(self, on_request):
        pass


class Left(BaseException):
    """Replaces the end of the process."""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Run a role in a pod with one GPU that TensorFlow does not find; return its device, or its exit code."""
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(devices, "DEVICES", tmp_path)
    served = []

    def leave(code):
        raise Left(int(code))

    def serve(cluster, preemption, device):
        served.append(device)

    monkeypatch.setattr(program, "_leave", leave)
    monkeypatch.setattr(program, "Preemption", Unasked)
    monkeypatch.setattr(server, "serve", serve)

    def run(role, **flags):
        chief, ps, worker = processes.addresses(3)
        members = {"chief": [chief], "ps": [ps], "worker": [worker]}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": members, "task": {"type": role, "index": 0}}))
        try:
            program.run(Config, sample.workload, flags, time.time())
        except Left as left:
            return left.args[0]
        return served[-1]

    return run


def test_a_worker_that_cannot_use_its_gpu_ends_before_it_serves(start, capsys):
    assert start("worker") == 2
    error = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (error["event"], error["code"]) == ("error", 2) and "A GPU is required" in error["message"]


def test_a_worker_that_may_compute_on_the_cpu_says_so(start, capsys):
    assert start("worker", require_gpu="false") == {"compute": "cpu", "gpu_allocated": 1}
    begun = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (begun["event"], begun["compute"], begun["gpu_allocated"]) == ("start", "cpu", 1)


def test_a_ps_does_not_compute(start):
    assert start("ps", require_gpu="true") == {}
