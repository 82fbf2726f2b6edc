"""A login that is cut short: no token is left, or what it is bound to says when it ends."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.program.test_logins import NOW, SPACE, Console, cluster
from trainyard.cli.logins import ENDS, make
from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api


class Cut(Console):
    """Its client is ended while it asks for the token; `killed`: it asks nothing after that."""

    cut, killed = True, False

    def __call__(self, method: str, path: str, query: Any, body: Any, kind: str) -> tuple[int, str]:
        if self.cut and (path.endswith("/token") or (self.killed and method == "DELETE")):
            raise KeyboardInterrupt
        return super().__call__(method, path, query, body, kind)


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    server = Cut(cluster().objects)
    with pytest.raises(KeyboardInterrupt):
        make(Api(server), "alice", None, tmp_path, NOW)
    assert server.logins == [] and not list(tmp_path.iterdir())


def test_what_a_killed_login_leaves_has_its_end_and_is_swept_after_it(tmp_path: Path) -> None:
    server = Cut(cluster().objects)
    server.killed = True
    with pytest.raises(KeyboardInterrupt):
        make(Api(server), "alice", 2, tmp_path, NOW)
    (left,) = server.logins
    notes = server.objects[f"{SPACE}/secrets/{left}"]["metadata"]["annotations"]
    assert notes[ENDS] == (NOW + timedelta(hours=2)).isoformat()
    server.cut = False
    assert make(Api(server), "alice", None, tmp_path, NOW + timedelta(hours=1)).name in server.logins
    assert left in server.logins
    make(Api(server), "alice", None, tmp_path, NOW + timedelta(hours=3))
    assert left not in server.logins


@pytest.mark.parametrize(("made", "stays"), [("2026-11-22T13:00:00Z", True), ("2026-11-22T11:00:00Z", False)])
def test_one_without_an_end_goes_a_day_after_it_was_made(tmp_path: Path, made: str, stays: bool) -> None:
    meta = {"name": "old", "labels": {"trainyard.dev/console-token": "alice"}, "creationTimestamp": made}
    server = cluster(**{f"{SPACE}/secrets/old": {"metadata": meta}})
    make(Api(server), "alice", None, tmp_path, NOW)
    assert ("old" in server.logins) is stays


def test_hours_that_are_none_are_the_default(tmp_path: Path) -> None:
    server = cluster()
    server.objects[f"{SPACE}/serviceaccounts/user-alice"]["metadata"]["annotations"][
        "trainyard.dev/console-token-hours"
    ] = "many"
    with pytest.raises(TrainyardError, match="for 8 hours, not for 9"):
        make(Api(server), "alice", 9, tmp_path, NOW)
