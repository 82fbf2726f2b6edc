"""Who shares a feed, with whose token it works, and what many viewers cost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.unit.console.consoles import CHIEF, LOG, RUN, Events, Stand, run
from tests.unit.console.fake import User
from tests.unit.console.watching import step, until, watching
from trainyard.trainings.log_events import events as ours


def test_the_feed_is_one_for_equal_rights_and_ends_with_its_last_watcher(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.api.users["here"] = User("carol", namespaces=("trainings",))
        async with stand.another() as second, stand.another() as third, stand.another() as fourth:
            for browser, token in ((stand, "viewer"), (second, "operator"), (third, "here"), (fourth, "stranger")):
                await browser.log_in(token)
            async with watching(fourth) as refused:
                assert refused.status == 403
            async with watching(stand) as one, watching(second) as two:
                await Events(one).next("run")
                await Events(two).next("run")
                assert len(stand.console.feeds) == 1
                assert stand.api.streams.count(CHIEF.rpartition("/")[0]) == 1
                async with watching(third) as three:
                    # Who sees less of the cluster gets a feed that was read with his rights.
                    await Events(three).next("run")
                    assert len(stand.console.feeds) == 2
                await until(lambda: len(stand.console.feeds) == 1)
            await until(lambda: len(stand.console.feeds) == 0 and not stand.api.streams)

    run(scenario, tmp_path)


def test_who_may_not_see_all_pods_is_told_the_cause_all_the_same(tmp_path: Path) -> None:
    """As the page says it when it is loaded: with the pods of the run's namespace and of the system."""

    async def scenario(stand: Stand) -> None:
        levels = ("trainings", "kube-system", "jobset-system")
        stand.api.users["alice"] = User("alice", namespaces=levels)
        await stand.log_in("alice")
        _, loaded = await stand.get(RUN)
        async with watching(stand) as answer:
            _, _, live = await Events(answer).next("run")
        unread = [[each["what"] for each in view["why"]["unread"]] for view in (json.loads(loaded), live)]
        assert unread[0] == unread[1]
        assert "everyone" not in unread[1]

    run(scenario, tmp_path)


def test_a_feed_goes_on_with_the_token_of_another_watcher(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, step(1))
        await stand.log_in("viewer")
        async with stand.another() as other:
            await other.log_in("operator")
            async with watching(stand) as first, watching(other) as second:
                mine, theirs = Events(first), Events(second)
                await mine.next("line")
                await theirs.next("line")
                # The token of who watches first is revoked, and he is told so.
                del stand.api.users["viewer"]
                stand.clock.ahead += 56
                stand.api.break_streams()
                assert (await mine.next("end"))[2] == {"reason": "login"}
                await until(lambda: LOG in stand.api.streams)
                stand.api.say(LOG, step(2))
                assert (await theirs.next("line"))[2]["step"] == 2
            assert (await stand.get("/api/v1/session"))[0] == 401

    run(scenario, tmp_path)


def test_twenty_viewers_of_one_run_ask_little(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.api.users |= {f"viewer{number}": User(f"user{number}") for number in range(20)}
        async with asyncio.TaskGroup() as group:
            ready = asyncio.Barrier(21)
            done = asyncio.Event()

            async def view(token: str) -> None:
                async with stand.another() as mine:
                    stand.clock.ahead += 1
                    await mine.log_in(token)
                    async with watching(mine) as answer:
                        await Events(answer).next("run")
                        await ready.wait()
                        await done.wait()

            for number in range(20):
                group.create_task(view(f"viewer{number}"))
            await ready.wait()
            assert len(stand.console.feeds) == 1
            before = len(stand.api.asked)
            await asyncio.sleep(4)
            # Nobody but the feed asks, until the reviews are a minute old.
            assert len(stand.api.asked) - before <= 20
            done.set()

    run(scenario, tmp_path)


def test_the_lines_of_these_tests_are_those_of_trainings() -> None:
    assert ours(step(1).partition(" ")[2])[0]["step"] == 1
