"""Watching a run: what comes, what a browser that was away gets, and an API server that goes and comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.console.consoles import CHIEF, LIVE, LOG, RUN, Events, Stand, run
from tests.unit.console.watching import step, until, watching
from trainyard.console import feed as feeds


def test_steps_come_as_they_are_said_and_a_browser_that_was_away_gets_what_it_missed(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, step(1), "2026-11-21T12:00:00.000000001Z no JSON", step(2))
        await stand.log_in("viewer")
        async with stand.another() as other:
            await other.log_in("viewer")
            async with watching(stand) as first, watching(other) as second:
                mine, theirs = Events(first), Events(second)
                assert [(await mine.next("line"))[2]["step"] for _ in range(2)] == [1, 2]
                await until(lambda: LOG in stand.api.streams)
                stand.api.say(LOG, step(3))
                last, _, data = await mine.next("line")
                assert data == {"event": "step", "step": 3, "loss": 0.5, "time": 1.0, "role": "chief"}
                assert [(await theirs.next("line"))[2]["step"] for _ in range(3)] == [1, 2, 3]
                first.close()
                stand.api.say(LOG, step(4))
                assert (await theirs.next("line"))[2]["step"] == 4
                async with watching(stand, **{"Last-Event-ID": last}) as again:
                    assert (await Events(again).next("line"))[2]["step"] == 4
                async with stand.browser.get(f"{stand.url}{RUN}/events?after={last}") as again:
                    assert (await Events(again).next("line"))[2]["step"] == 4
                async with watching(stand, **{"Last-Event-ID": "other-99"}) as again:
                    assert (await Events(again).next("line"))[2]["step"] == 1

    run(scenario, tmp_path)


def test_an_api_server_that_goes_and_comes_back(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(feeds, "PULSE_SECONDS", 0.5)

    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, step(1))
        await stand.log_in("viewer")
        async with watching(stand) as answer:
            mine = Events(answer)
            await mine.next("line")
            stand.api.down = True
            stand.api.break_streams()
            said = (await mine.next("notice"))[2]
            assert said["text"].startswith("The API server does not answer")
            assert said["since"]
            stand.api.down = False
            while said["text"]:
                said = (await mine.next("notice"))[2]
            assert said == {"text": "", "since": ""}
            await until(lambda: LOG in stand.api.streams)
            stand.api.say(LOG, step(2))
            # No line twice, and none missed.
            assert (await mine.next("line"))[2]["step"] == 2

    run(scenario, tmp_path)


def test_a_watch_goes_on_where_it_was_and_is_made_anew_when_it_is_too_old(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(feeds, "VIEW_PAUSE", 0.05)

    async def scenario(stand: Stand) -> None:
        await stand.log_in("viewer")
        pods = CHIEF.rpartition("/")[0]
        async with watching(stand) as answer:
            mine = Events(answer)
            await mine.next("run")
            await until(lambda: pods in stand.api.streams)
            stand.api.change("MODIFIED", CHIEF, stand.api.objects[CHIEF])
            stand.api.break_streams()
            await until(lambda: [query["resourceVersion"] for path, query in stand.api.opened if path == pods][1:])
            assert [query["resourceVersion"] for path, query in stand.api.opened if path == pods] == ["11", "12"]
            stand.api.gone_versions = 4
            listed = len([path for _, _, path in stand.api.asked if path == pods])
            stand.clock.ahead += 5
            stand.api.break_streams()
            await until(lambda: len([path for _, _, path in stand.api.asked if path == pods]) > listed)

    run(scenario, tmp_path)


def test_what_a_run_says_last_comes_and_the_next_attempt_is_followed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(feeds, "VIEW_PAUSE", 0.05)

    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, step(1))
        await stand.log_in("viewer")
        async with watching(stand) as answer:
            mine = Events(answer)
            assert (await mine.next("run"))[2]["unread"] == []
            await until(lambda: LOG in stand.api.streams)
            pod, live = stand.api.objects[CHIEF], stand.api.objects[LIVE]
            # Between two views is more time than answers are kept for.
            stand.clock.ahead += 8
            stand.api.say(LOG, step(2))
            stand.api.change("MODIFIED", CHIEF, {**pod, "status": {"phase": "Succeeded"}})
            stand.api.change("MODIFIED", LIVE, {**live, "status": {"terminalState": "Completed"}})
            while (await mine.next("run"))[2]["over"] is False:
                pass
            stand.api.break_streams(LOG)
            meta = {
                **pod["metadata"],
                "name": "mnist-chief-0-0-next",
                "uid": "q",
                "creationTimestamp": "2026-11-21T13:00:00Z",
            }
            stand.api.change("ADDED", f"{CHIEF.rpartition('/')[0]}/mnist-chief-0-0-next", {**pod, "metadata": meta})
            again = LOG.replace("abcde", "next")
            await until(lambda: again in stand.api.streams)
            stand.api.say(again, step(1, loss=0.1))
            assert (await mine.next("line"))[2]["loss"] == 0.1

    run(
        scenario,
        tmp_path,
    )
