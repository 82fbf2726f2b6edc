"""The lease: taken, renewed, given back, taken over from the dead and never from the living."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.locks.samples import DEAD_HERE, MINE, OTHER, Leases, Ticking
from trainyard.kube.api import KubeError
from trainyard.site_lock import lease
from trainyard.site_lock.holder import Busy, Holder
from trainyard.site_lock.lease import Lease, Lost


def held(by: Holder, at: float) -> Leases:
    """A cluster whose lease a run took, or renewed last, at a time."""
    server = Leases()
    Lease(server.api, by, Ticking(at)).take()
    return server


def test_what_stands_in_the_cluster() -> None:
    server = Leases()
    assert Lease(server.api, replace(MINE, revision="3f2a91c"), Ticking(1010.0)).take() is None
    assert server.lease is not None
    assert server.lease["spec"] == {
        "holderIdentity": "run-1/11",
        "leaseDurationSeconds": 60,
        "acquireTime": "1970-01-01T00:16:40.000000Z",
        "renewTime": "1970-01-01T00:16:50.000000Z",
        "leaseTransitions": 0,
    }
    assert server.lease["metadata"]["annotations"] == {
        "trainyard.dev/verb": "site",
        "trainyard.dev/user": "alice",
        "trainyard.dev/host": "desk",
        "trainyard.dev/revision": "3f2a91c",
        "trainyard.dev/boot": "b1",
        "trainyard.dev/place": "1:2",
    }
    assert lease.read(server.api) == replace(MINE, revision="3f2a91c", leased=True)


@pytest.mark.parametrize(
    ("former", "renewed", "now", "waited", "taken"),
    [
        # By the clock it lives: refused at once.
        (OTHER, 1000.0, 1000.0, 0, False),
        (OTHER, 1000.0, 1059.0, 0, False),
        (OTHER, 1014.0, 1000.0, 0, False),
        # By the clock it has ended, and nobody renews it for a minute.
        (OTHER, 1000.0, 1061.0, 60, True),
        (OTHER, 1000.0, 90000.0, 60, True),
        # Its renewal lies in the future: a clock is wrong, so the clock does not count.
        (OTHER, 5000.0, 1000.0, 60, True),
        # The same lock file of the same boot: that it could be locked proves the end.
        (DEAD_HERE, 1000.0, 1001.0, 0, True),
        # Of this machine, before its power was cut, or another user's: whether it lives is seen, and not believed.
        (replace(DEAD_HERE, boot="another boot"), 1000.0, 1001.0, 60, True),
        (replace(DEAD_HERE, place="1:3"), 1000.0, 1001.0, 60, True),
        (replace(DEAD_HERE, place=""), 1000.0, 1001.0, 60, True),
    ],
)
def test_only_the_dead_are_robbed(former: Holder, renewed: float, now: float, waited: float, taken: bool) -> None:
    server, clock = held(former, renewed), Ticking(now)
    mine = Lease(server.api, MINE, clock)
    if taken:
        assert mine.take() == replace(former, leased=True)
        assert lease.read(server.api) == replace(MINE, leased=True)
        assert server.lease and server.lease["spec"]["leaseTransitions"] == 1
    else:
        with pytest.raises(Busy) as caught:
            mine.take()
        assert caught.value.holder == replace(former, leased=True)
        assert str(former).split(", process")[0] in caught.value.message
        assert lease.read(server.api) == replace(former, leased=True)
    assert clock.now - now == waited


def test_a_holder_whose_clock_is_an_hour_behind_is_not_robbed() -> None:
    server = held(OTHER, 1000.0)
    behind = Ticking(1000.0)
    holder = Lease(server.api, OTHER, behind)

    def renews_each_15_seconds() -> None:
        behind.now = mine.now - 3600
        if mine.now % 15 == 0:
            holder.renew()

    mine = Ticking(4600.0, renews_each_15_seconds)
    with pytest.raises(Busy, match="reprovision by robot on controller1"):
        Lease(server.api, MINE, mine).take()


def test_another_user_of_the_same_machine_is_not_robbed() -> None:
    other = replace(MINE, run_id="run-9", user="bob", place="7:7")
    server, living = held(other, 1000.0), Ticking(1000.0)
    holder = Lease(server.api, other, living)

    def renews_each_15_seconds() -> None:
        living.now = mine.now
        if mine.now % 15 == 0:
            holder.renew()

    mine = Ticking(1000.0, renews_each_15_seconds)
    with pytest.raises(Busy, match="site by bob on desk"):
        Lease(server.api, MINE, mine).take()
    assert mine.now - 1000.0 <= 15


def test_of_two_that_take_over_at_once_one_gets_it() -> None:
    server = held(OTHER, 1000.0)
    first = Lease(server.api, replace(OTHER, run_id="run-3", place="9:9"), Ticking(2000.0))
    server.before_write = first.take
    with pytest.raises(Busy, match="run-3"):
        Lease(server.api, MINE, Ticking(2000.0)).take()


def test_of_two_that_create_it_at_once_one_gets_it() -> None:
    server = Leases()
    server.before_write = Lease(server.api, OTHER, Ticking()).take
    with pytest.raises(Busy, match="run-2"):
        Lease(server.api, MINE, Ticking()).take()


def test_it_lives_while_it_is_renewed_and_is_gone_when_given_back() -> None:
    server, clock = Leases(), Ticking()
    mine = Lease(server.api, MINE, clock)
    mine.take()
    for _ in range(100):
        clock.sleep(15)
        mine.renew()
        with pytest.raises(Busy):
            Lease(server.api, OTHER, Ticking(clock.now)).take()
    mine.release()
    assert server.lease is None
    mine.release()


def test_what_is_another_s_is_neither_renewed_nor_given_back() -> None:
    server = held(MINE, 1000.0)
    mine = Lease(server.api, MINE, Ticking())
    mine.take()
    Lease(server.api, OTHER, Ticking(9000.0)).take()
    with pytest.raises(Lost, match="taken over: reprovision by robot"):
        mine.renew()
    mine.release()
    assert lease.read(server.api) == replace(OTHER, leased=True)


def test_a_lease_that_somebody_deleted_is_lost() -> None:
    server = held(MINE, 1000.0)
    mine = Lease(server.api, MINE, Ticking())
    mine.take()
    server.lease = None
    with pytest.raises(Lost, match="deleted"):
        mine.renew()


@pytest.mark.parametrize("status", [0, 403, 500])
def test_a_server_that_does_not_serve_is_said(status: int) -> None:
    server = Leases()
    server.down = [status]
    with pytest.raises(KubeError) as caught:
        Lease(server.api, MINE, Ticking()).take()
    assert caught.value.status == status


def test_a_lease_that_was_emptied_is_anybody_s() -> None:
    server = held(OTHER, 1000.0)
    assert server.lease
    server.lease["spec"]["holderIdentity"] = ""
    assert Lease(server.api, MINE, Ticking()).take() is None
    assert lease.read(server.api) == replace(MINE, leased=True)
