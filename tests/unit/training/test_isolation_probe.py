"""The pod outside a run that tries its port: when it is there, what it finds out, and that it always goes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.apiserver import ApiServer
from tests.unit.training.samples import training
from trainyard.kube.api import Api
from trainyard.trainings.probe import IsolationProbe

SPACE = "/api/v1/namespaces/trainings"
POD = f"{SPACE}/pods/mnist-stranger"
POLICY = "/apis/networking.k8s.io/v1/namespaces/trainings/networkpolicies/mnist-stranger"
USED = [{"event": "connected", "time": 10.0}, {"event": "step", "step": 20, "time": 20.0}]


def tried(target: str, outcome: str, begin: float = 12.0) -> str:
    return json.dumps({"target": target, "outcome": outcome, "detail": "10.0.0.9", "begin": begin, "end": begin + 1})


BLOCKED = [tried("target", "timeout"), tried("control", "connected")]


class Found(ApiServer):
    """A server on which the stranger has said `lines`."""

    def __init__(self, *lines: str) -> None:
        super().__init__({f"{POD}/log": lambda _: "\n".join(lines)})

    @property
    def there(self) -> bool:
        return POD in self.objects or POLICY in self.objects


def stranger(server: ApiServer, *, enabled: bool = True, **changes: Any) -> IsolationProbe:
    run = training(logs={"claim": "training"}, **changes)
    return IsolationProbe(Api(server), run, control="kubernetes.default.svc,443", enabled=enabled)


@pytest.mark.parametrize(
    ("lines", "chief", "blocked", "goes_early"),
    [
        (BLOCKED, USED, True, True),
        ([tried("target", "connected"), tried("control", "connected")], USED, False, True),
        # Not yet in use: what was tried says nothing.
        (BLOCKED, [], None, False),
        ([], USED, None, False),
        ([tried("target", "timeout", begin=1.0), tried("control", "connected")], USED, None, False),
        ([tried("target", "timeout"), tried("control", "timeout")], USED, None, False),
    ],
)
def test_it_goes_when_the_question_is_answered(
    lines: list[str], chief: list[Any], blocked: bool | None, goes_early: bool
) -> None:
    server = Found(*lines)
    with stranger(server) as one:
        assert POD in server.objects and POLICY in server.objects
        one.watch(chief)
        assert server.there is not goes_early
        assert one.evidence(chief)["stranger_blocked"] is blocked
    assert not server.there


def test_it_goes_when_following_fails() -> None:
    server = Found(*BLOCKED)
    with pytest.raises(RuntimeError), stranger(server):
        raise RuntimeError
    assert not server.there


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"enabled": False}, "isolation_probe is off"),
        (
            {"topology": "multi_worker"},
            "the topology multi_worker has no port that is known to be in use",
        ),
    ],
)
def test_it_does_not_come_where_nobody_asks_or_nothing_listens(options: dict[str, Any], why: str) -> None:
    server = Found(*BLOCKED)
    with stranger(server, **options) as one:
        one.watch(USED)
        found = one.evidence(USED)
    assert found["stranger_blocked"] is None and why in found["detail"]
    assert server.writes == []
