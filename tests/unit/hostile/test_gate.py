"""The gate: any value in, a checked one out."""

from __future__ import annotations

import json
import math
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hostile.values import EXAMPLES, JSON, SHOWN, TEXTS
from trainyard.core import untrusted
from trainyard.core.untrusted import UntrustedError


@EXAMPLES
@given(st.one_of(JSON, st.binary(max_size=200)), st.integers(1, 100))
def test_text_is_bounded_and_clean(value: Any, limit: int) -> None:
    found = untrusted.text(value, limit)
    assert not set(found) & SHOWN and len(found) <= limit + len(untrusted.CUT)
    found.encode()
    assert "\n" not in untrusted.line(value, limit)


@EXAMPLES
@given(JSON)
def test_numbers_are_finite_or_unknown(value: Any) -> None:
    number, whole = untrusted.number(value), untrusted.whole(value, -5, 5)
    assert number is None or math.isfinite(number)
    assert whole is None or (-5 <= whole <= 5 and isinstance(whole, int))


@EXAMPLES
@given(JSON)
def test_what_is_plain_is_json(value: Any) -> None:
    found = json.dumps(untrusted.plain(value), allow_nan=False)
    assert not set("".join(map(str, json.loads(f"[{found}]")))) & SHOWN


@EXAMPLES
@given(st.one_of(JSON, st.datetimes().map(datetime.isoformat)))
def test_a_moment_is_a_time_or_unknown(value: Any) -> None:
    found = untrusted.moment(value)
    assert found is None or found.tzinfo is not None


@EXAMPLES
@given(JSON, st.lists(st.one_of(TEXTS, st.integers(-3, 3)), max_size=3))
def test_a_path_of_keys_leads_somewhere_or_to_nothing(value: Any, keys: list[str | int]) -> None:
    untrusted.at(value, *keys)


@EXAMPLES
@given(st.lists(JSON, min_size=1, max_size=3))
def test_a_path_stays_below_its_folder(parts: list[Any]) -> None:
    try:
        found = untrusted.path_below("/srv/logs", *parts)
    except UntrustedError as error:
        assert not set(str(error)) & SHOWN
    else:
        assert os.path.normpath(found) == found and Path(found).is_relative_to("/srv/logs") and found != "/srv/logs"


@pytest.mark.parametrize(
    ("value", "found"),
    [("2026-11-23T12:00:00Z", True), ("2026-11-23T12:00:00.123456789Z", True), ("2026-11-23T12:00:00+02:00", True),
     ("2026-11-23 12:00:00Z", False), ("2026-11-23T12:00:00", False), ("2026-02-30T12:00:00Z", False), ("step", False)],
)  # fmt: skip
def test_moments(value: str, found: bool) -> None:
    assert (untrusted.moment(value) is not None) == found


@pytest.mark.parametrize(
    ("value", "number", "whole"),
    [("12", 12.0, 12), ("1.5", 1.5, None), ("\u0661\u0662", None, None), ("1_000", None, None), (True, None, None),
     (10**400, None, None),
     ("9" * 5_000, None, None), (math.nan, None, None), (" 7 ", 7.0, 7), ("1e400", None, None)],
)  # fmt: skip
def test_numbers(value: Any, number: float | None, whole: int | None) -> None:
    assert (untrusted.number(value), untrusted.whole(value)) == (number, whole)


def test_names_are_those_of_kubernetes() -> None:
    assert untrusted.name("a-b.c1", "run") == "a-b.c1"
    for bad in ("", "A", "-a", "a..b", "a/b", "a\n", "x" * 254, None, ["a"], "\u0661"):
        with pytest.raises(UntrustedError, match="The run"):
            untrusted.name(bad, "run")


def test_a_file_is_opened_below_its_folder_without_links(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    descriptor = untrusted.open_below(str(tmp_path / "in"), "a", "b", flags=os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"x")
    os.close(descriptor)
    assert (tmp_path / "in" / "a" / "b").read_text() == "x"
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    os.mkfifo(tmp_path / "in" / "pipe")
    for parts, flags in ((("link", "c"), os.O_WRONLY | os.O_CREAT), (("link",), os.O_RDONLY), (("pipe",), os.O_WRONLY)):
        with pytest.raises(OSError, match=r"(?s).+"):
            untrusted.open_below(str(tmp_path / "in"), *parts, flags=flags)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("begin", ["\x1b]0;", "\x1bP", "\x1bX", "\x1b^", "\x1b_", "\x1b["])
def test_an_escape_sequence_without_an_end_hides_no_other_line(begin: str) -> None:
    assert untrusted.clean(f"one {begin}evil\ntwo\nthree").split("\n")[1:] == ["two", "three"]
