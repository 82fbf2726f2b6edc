"""Tests of variables on real parameter servers, in a separate process: TensorFlow connects a process only once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainings import processes
from training.cnn_ps.config import Config
from training.cnn_ps.main import workload

tf = pytest.importorskip("tensorflow")
ROOT = Path(__file__).resolve().parents[3]


def spread(servers: int, data_dir: Path, folder: Path) -> None:
    """Create or restore the variables of cnn_ps, train five steps, save, and print their places and sums."""
    from engine.loop.optimizer import Adam
    from engine.loop.sharding import bytes_held, partitioner, pieces
    from engine.loop.state import copy, variables
    from engine.loop.step import Counters, make_train_call
    from engine.run.checkpoint import ChiefCheckpoint

    addresses = processes.addresses(servers + 2)
    spec = tf.train.ClusterSpec({"chief": addresses[:1], "worker": addresses[1:2], "ps": addresses[2:]})
    roles = [("worker", 0), *(("ps", index) for index in range(servers))]
    serving = [tf.distribute.Server(spec, job_name=role, task_index=index) for role, index in roles]
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="chief", task_id=0)
    strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner(servers))
    cnn = workload(Config(data_dir=data_dir, batch_size=16))
    with strategy.scope():
        model = cnn.model()
        adam = Adam(model.parameters(), strategy, cnn.config.learning_rate)
        counters = Counters(lanes=1)
    chief = "/job:chief/replica:0/task:0/device:CPU:0"
    checkpoint = ChiefCheckpoint(folder, [folder], chief, model=model, adam=adam, global_step=counters.global_step)
    checkpoint.restore()
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    source = iter(coordinator.create_per_worker_dataset(cnn.data.source))
    first = int(counters.global_step.numpy())
    numbers = [tf.constant(number, tf.int64) for number in (0, first, 5)]
    coordinator.schedule(make_train_call(cnn, model, adam, counters), args=(source, *numbers)).fetch()
    checkpoint.save(first + 5)
    kinds = {"parameters": model.parameters(), "first": adam.first_moments, "second": adam.second_moments}
    all_kinds = [each for kind in kinds.values() for each in kind]
    sums = [float(tf.reduce_sum(tf.abs(tf.convert_to_tensor(each)))) for each in all_kinds]
    # The chief's copy, which is judged and exported, is whole.
    whole = cnn.model()
    copy(whole, model)
    assert len(variables(whole)) == len(model.parameters())
    assert [float(tf.reduce_sum(tf.abs(each))) for each in whole.parameters()] == sums[: len(model.parameters())]
    places = {name: [each.device for each in pieces(kind)] for name, kind in kinds.items()}
    held = {name: bytes_held(kind) for name, kind in kinds.items()}
    print(json.dumps({"places": places, "held": held, "sums": sums, "steps": first + 5}), flush=True)
    del serving
    os._exit(0)


def result(servers: int, data_dir: Path, folder: Path) -> dict:
    """Return the output of `spread`, called in another process."""
    done = subprocess.run(
        [sys.executable, __file__, str(servers), str(data_dir), str(folder)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'workloads'}"},
        check=False,
        capture_output=True,
        timeout=240,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_each_of_eight_servers_holds_its_share_and_the_run_goes_on_with_fewer(tmp_path):
    data, saved, other = processes.write(tmp_path / "data"), tmp_path / "saved", tmp_path / "other"
    eight = result(8, data, saved)
    for held in eight["held"].values():
        assert sorted(held) == [f"ps {index}" for index in range(8)]
        total = sum(held.values())
        assert total == 824_326 * 4
        assert all(0.08 <= part / total <= 0.17 for part in held.values()), held
    # The moments of each piece lie beside it, so that an update needs no other server.
    assert eight["places"]["parameters"] == eight["places"]["first"] == eight["places"]["second"]
    assert eight["steps"] == 5 and all(eight["sums"])

    shutil.copytree(saved, other)
    three, one = result(3, data, saved), result(1, data, other)
    assert [len(run["held"]["parameters"]) for run in (three, one)] == [3, 1]
    # In three pieces and whole, the same five steps from the same checkpoint end in the same place.
    assert three["steps"] == one["steps"] == 10
    assert one["sums"] == pytest.approx(three["sums"], rel=1e-3)
    assert one["sums"] != pytest.approx(eight["sums"], rel=1e-3)


if __name__ == "__main__":
    spread(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
