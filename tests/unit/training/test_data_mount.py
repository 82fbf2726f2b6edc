"""The path at which a run has its data."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.training.samples import DATA_IMAGE, training
from trainyard.core.errors import TrainyardError
from trainyard.trainings.jobset import spec_hash
from trainyard.trainings.template import pod_template


def worker(**changes: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the mounts of a worker by volume, and its variables."""
    container = pod_template(training(**changes), "worker", "a")["spec"]["containers"][0]
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    return mounts, {each["name"]: each.get("value") for each in container["env"]}


def test_another_path() -> None:
    mounts, env = worker(data={"image": DATA_IMAGE, "mount": "/root/.keras/datasets"})
    assert mounts["data"] == env["DATA_DIR"] == "/root/.keras/datasets"
    mounts, env = worker()
    assert mounts["data"] == env["DATA_DIR"] == "/data"


def test_the_default_path_is_the_same_run() -> None:
    given = {"image": DATA_IMAGE, "mount": "/data"}
    assert spec_hash(training(data=given)) == spec_hash(training())
    assert spec_hash(training(data={**given, "mount": "/mnt"})) != spec_hash(training())


@pytest.mark.parametrize("mount", ["data", "/", "/a/../b", "/tmp", "/logs", "/dev/shm", "/opt/trainyard/code"])
def test_paths_that_cannot_be(mount: str) -> None:
    with pytest.raises(TrainyardError, match=r"data\.mount is"):
        training(data={"image": DATA_IMAGE, "mount": mount})


def test_a_volume_at_the_same_path() -> None:
    volume = {"name": "cache", "mount": "/mnt/x/", "claim": "cache"}
    with pytest.raises(TrainyardError, match="a volume of worker has the same path"):
        training(data={"image": DATA_IMAGE, "mount": "/mnt/x"}, worker={"volumes": [volume]})
