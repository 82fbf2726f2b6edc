"""Everything that comes from a run is hostile: lines, names, metrics."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from tests.unit.console.consoles import CHIEF, LIVE, LOG, RECORD, RUN, SPACE, Events, Stand, run
from trainyard.console.shares import LINE_BYTES
from trainyard.core.untrusted import CUT, clean, plain
from trainyard.kube.pod_log import Lines, readable

STAMP = "2026-11-21T12:00:00.000000001Z"
POD = "mnist-chief-0-0-abcde"
MARKUP = "<script>alert(1)</script>"

READABLE = {
    b"plain": "plain",
    b"\x1b[31mred\x1b[0m": "red",
    b"\x1b]0;title\x07after": "after",
    b"\x1b]8;;https://evil.example\x1b\\link": "link",
    b"bad \xff\xfe utf": "bad \ufffd\ufffd utf",
    b"bell\x07 null\x00 tab\tstays": "bell null tab\tstays",
    "turned \u202eround".encode(): "turned round",
    b"10%\r20%\r30%": "30%",
    b"\xc2\x9b31mC1": "31mC1",
    MARKUP.encode(): MARKUP,
}


@pytest.mark.parametrize("line", READABLE)
def test_a_line_as_people_read_it(line: bytes) -> None:
    assert readable(line) == READABLE[line]


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_lines_are_the_same_however_they_come(size: int) -> None:
    long = b"y" * max(size, 10) + b"x" * (LINE_BYTES - 3) + b"end"
    text = b"first\n" + long + b"\n\nlast"
    lines, found = Lines(LINE_BYTES, stamped=False, last=True), []
    for begin in range(0, len(text), size):
        found += lines.feed(text[begin : begin + size])
        assert len(lines._begun) <= 2 * LINE_BYTES
    found += lines.rest()
    shown = [(each.text, each.cut) for each in found]
    assert shown == [(b"first", False), (long[-LINE_BYTES:], True), (b"", False), (b"last", False)]


def test_values_that_no_reader_of_json_takes_are_left_out() -> None:
    deep: object = 1
    for _ in range(50):
        deep = [deep]
    said = {"loss": math.nan, "rate": math.inf, "text": "\x1b[1mx\ud800", "deep": deep, "fine": [1, 2.5, None, True]}
    found = plain(said)
    json.dumps(found, allow_nan=False).encode("utf-8")
    assert found | {"deep": 0} == {"loss": None, "rate": None, "text": "x", "deep": 0, "fine": [1, 2.5, None, True]}
    assert clean("a\nb") == "a\nb"


def test_a_hostile_log_is_bounded(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        many = [f"{number} {MARKUP}" for number in range(100_000)]
        stand.api.set_log(LOG, *many, "y" * 1_000_000, "\udcff end")
        await stand.log_in("viewer")
        status, text = await stand.get(f"{RUN}/logs/{POD}?tail=99999999")
        lines = text.split("\n")
        assert (status, len(lines)) == (200, 5_000)
        assert lines[-1] == "\ufffd end"
        assert lines[-2] == "y" * LINE_BYTES + CUT
        status, text = await stand.get(f"{RUN}/logs/{POD}?tail=2", Accept="application/json")
        assert json.loads(text) == {"pod": POD, "text": "y" * LINE_BYTES + CUT + "\n\ufffd end", "cut": True}
        for tail in ("-1", "0", "x", "9" * 30, "٣"):
            assert (await stand.get(f"{RUN}/logs/{POD}?tail={tail}"))[0] == 200

    run(scenario, tmp_path)


def test_the_log_of_a_pod_of_another_run_is_not_given(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.api.objects[f"{SPACE}/pods/other"] = {"metadata": {"name": "other", "labels": {}}, "status": {}}
        stand.api.set_log(f"{SPACE}/pods/other/log", "secret")
        await stand.log_in("viewer")
        for path in (f"{RUN}/logs/other", f"{RUN}/logs/other/events", f"{RUN}/logs/..%2f..%2fsecrets"):
            status, text = await stand.get(path)
            assert status == 404
            assert "secret" not in text.replace("secrets", "")

    run(scenario, tmp_path)


def test_a_log_is_followed_in_events_of_lines(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, f"{STAMP} one", f"{STAMP[:-2]}2Z two {MARKUP}\x1b[0m")
        await stand.log_in("viewer")
        async with stand.browser.get(f"{stand.url}{RUN}/logs/{POD}/events") as answer:
            assert answer.content_type == "text/event-stream"
            mine, said = Events(answer), ""
            while "two" not in said:
                said += (await mine.next("log"))[2]["text"] + "\n"
            assert said == f"one\ntwo {MARKUP}\n"
            pod = stand.api.objects[CHIEF]
            stand.api.objects[CHIEF] = {**pod, "status": {"phase": "Succeeded"}}
            stand.clock.ahead += 2
            stand.api.break_streams()
            assert (await mine.next("end"))[2] == {"reason": ""}

    run(scenario, tmp_path)


def test_hostile_lines_of_a_chief_reach_browsers_as_plain_json(tmp_path: Path) -> None:
    said = [
        f'{STAMP} {{"event": "step", "step": 1, "loss": NaN, "time": 1}}',
        f"{STAMP[:-2]}2Z " + '{"event": "step", "step": 2, "note": "\\ud800' + MARKUP + '"}',
        f"{STAMP[:-2]}3Z " + "[" * 5000,
        f"{STAMP[:-2]}4Z " + '{"event": "step", "step": "<b>"}',
        f"{STAMP[:-2]}5Z " + '{"event": "step", "step": 1' + "0" * 400 + "}",
        f'{STAMP[:-2]}6Z {{"event": "step", "step": 6, "data": "\\nevent: end\\ndata: x"}}',
    ]

    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, *said)
        await stand.log_in("viewer")
        async with stand.browser.get(f"{stand.url}{RUN}/events") as answer:
            mine = Events(answer)
            assert (await mine.next("line"))[2]["loss"] is None
            assert (await mine.next("line"))[2]["note"] == MARKUP
            assert (await mine.next())[1:] == (
                "line",
                {"event": "step", "step": 6, "data": "\nevent: end\ndata: x", "role": "chief"},
            )

    run(scenario, tmp_path)


@pytest.mark.parametrize("odd", [{"steps": "x"}, {"files": []}, {"restarts": "x"}, {"train_steps": {}, "accuracy": []}])
def test_a_forged_record_breaks_no_page(odd: dict[str, object], tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        del stand.api.objects[LIVE], stand.api.objects[CHIEF]
        data = stand.api.objects[RECORD]["data"]
        data["result.json"] = json.dumps({**json.loads(data["result.json"]), **odd})
        await stand.log_in("viewer")
        for path in ("/", "/runs/trainings/mnist"):
            assert (await stand.get(path))[0] == 200, path

    run(scenario, tmp_path)


def test_commands_to_a_terminal_reach_no_page(tmp_path: Path) -> None:
    """Someone may read a page with curl; browsers turn text round."""
    commands = f"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[31m\x00\r\u202e\u2028 end {MARKUP}"

    async def scenario(stand: Stand) -> None:
        live = stand.api.objects[LIVE]
        live["metadata"]["annotations"] |= {f"trainyard.dev/{each}": commands for each in ("workload", "topology")}
        record = stand.api.objects[RECORD]["data"]
        odd = {"workload": commands, "roles": {commands: commands}, "note": commands}
        record["result.json"] = json.dumps({**json.loads(record["result.json"]), **odd})
        await stand.log_in("viewer")
        for path in ("/", "/runs/trainings/mnist", "/cluster/core/v1/pods?namespace=trainings", "/receipts"):
            _, text = await stand.get(path)
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\u2028]", text), path
        assert " end &lt;script" in (await stand.get("/"))[1]

    run(scenario, tmp_path)


def test_markup_in_names_and_records_is_text_on_pages(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        live = stand.api.objects["/apis/jobset.x-k8s.io/v1alpha2/namespaces/trainings/jobsets/mnist"]
        live["metadata"]["annotations"]["trainyard.dev/workload"] = MARKUP
        stand.api.users["evil"] = stand.api.users["viewer"].__class__(MARKUP)
        await stand.log_in("evil")
        for path in ("/", "/runs/trainings/mnist", "/runs/trainings/none", f"/{MARKUP}"):
            _, text = await stand.get(path)
            assert MARKUP not in text, path

    run(scenario, tmp_path)
