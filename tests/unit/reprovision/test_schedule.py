"""Spans of time, as systemd reads them: each of its words, and what neither reads."""

from __future__ import annotations

import re
import subprocess

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.site.schedule import seconds

MONTH, YEAR = 2629800.0, 31557600.0
SPANS = {
    "15min": 900, "0": 0, "20": 20, "2d": 172800, "1h 30min": 5400, "1h30min": 5400, "1hr": 3600, "1hour": 3600,
    "15minutes": 900, "1 minute": 60, "30 seconds": 30, "1second": 1, "7sec 1s": 8, "3m": 180, "1.5h": 5400,
    ".5hours": 1800, "1w": 604800, "2 weeks": 1209600, "1week": 604800, "1day": 86400, "2 days": 172800,
    "1M": MONTH, "1month": MONTH, "2months": 2 * MONTH, "1y": YEAR, "1year": YEAR, "2 years": 2 * YEAR,
    "500ms": 0.5, "500msec": 0.5, "7us": 7e-6, "7usec": 7e-6, "7\u00b5s": 7e-6, "7\u03bcs": 7e-6, " 5 min 3 ": 303,
}  # fmt: skip
NONE = ("", " ", "soon", "min", "3.h", "1H", "1 fortnight", "-1h", "1h,2", "5 min later")


@pytest.mark.parametrize(("span", "expected"), SPANS.items())
def test_spans(span: str, expected: float) -> None:
    assert seconds(span) == pytest.approx(expected)


@pytest.mark.parametrize("span", [*NONE, "infinity"])
def test_what_is_no_span(span: str) -> None:
    with pytest.raises(TrainyardError, match="is not a time span"):
        seconds(span)


@pytest.mark.parametrize("span", [*SPANS, *NONE])
def test_systemd_reads_the_same(span: str) -> None:
    try:
        done = subprocess.run(
            ["systemd-analyze", "timespan", "--", span], capture_output=True, text=True, check=False, timeout=20
        )
    except FileNotFoundError:
        pytest.skip("systemd-analyze is not installed")
    said = re.search(r"s: (\d+)$", done.stdout, re.MULTILINE)
    assert (int(said[1]) if done.returncode == 0 and said else None) == (
        round(SPANS[span] * 1e6) if span in SPANS else None
    )
