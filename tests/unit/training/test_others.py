"""A run that somebody else ends or replaces while it is followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.scripted import SETS, Cluster
from tests.unit.training.test_follow import STARTS, TRAINING, follow
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.trainings.follow import Follower, Settings


@pytest.mark.parametrize("what", ["vanish", "replace"])
def test_a_run_that_somebody_else_stops(tmp_path: Path, what: str) -> None:
    error, cluster, _ = follow(tmp_path, [*STARTS, (10, what)])
    assert "mnist (attempt 20261121T120000Z-0001) was stopped or deleted by another user" in error.message
    assert "continue from its last checkpoint" in error.remedy
    assert cluster.writes == [], "what has become of it is for the other to say"


def test_a_run_that_took_the_place_of_the_one_to_be_given_up_is_not_ended(tmp_path: Path) -> None:
    class Raced(Cluster):
        """Somebody submits it anew between the last look and the deletion."""

        def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
            if method == "DELETE" and path == f"{SETS}/mnist":
                self.replace()
            return super().__call__(method, path, query, body, kind)

    cluster = Raced(TRAINING, [(1, "start", "worker-1")])
    with pytest.raises(TrainyardError, match="not all pods ran within start_timeout"):
        Follower(Api(cluster), TRAINING, Settings(str(tmp_path), isolation_probe=False), print, cluster.clock).follow(
            "20261121T120000Z-0001", submitted=True
        )
    there = cluster.objects[f"{SETS}/mnist"]["metadata"]
    assert there["annotations"]["trainyard.dev/attempt"] == "20261121T130000Z-0002" and "deletionTimestamp" not in there
