"""Values that a user of the cluster, a host or a program may choose; the API server checks the shape of objects."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = settings(
    max_examples=int(os.environ.get("TRAINYARD_EXAMPLES", "200")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    database=None,
)
"""Set TRAINYARD_EXAMPLES=5000 for the long run."""

WORDS = st.sampled_from(
    ["", "abc", "-1", "0", "1e999", "9" * 500, "NaN", "inf", "1k", "12.9", "../../etc", "/etc/cron.d/x", "a\0b", "[/x]",
     "[red]", "{{ 7 * 7 }}", "\x1b[2J", "\x1b]52;c;eA==\x07", "\u2028", "\ud800", "\u202e", "<script>", "x" * 5_000,
     "2026-11-23T12:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-13-40T99:00:00Z", "true"]
)  # fmt: skip
TEXTS = st.one_of(WORDS, st.text(max_size=40))
LABELS = st.text(st.sampled_from("abz019-_.AZ"), max_size=63)
"""Values of labels: the API server allows no others."""
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(10**400), 10**400), st.floats(), TEXTS,
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
"""Any value of JSON, as a record or a line of a log may hold it."""
SHOWN = set(map(chr, (*range(9), 11, 12, *range(14, 32), 127, 0x9B))) | {"\u202e", "\u2028"}
"""Characters that no output may have."""


def documents(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of JSON with some of these keys, each of any value."""
    return st.dictionaries(st.sampled_from(keys), JSON, max_size=len(keys))


def lines(*keys: str) -> st.SearchStrategy[str]:
    """A log: events with these keys, and what else a program prints."""
    event = documents("event", *keys).map(lambda each: json.dumps(each).encode("utf-8", "replace").decode())
    kinds = st.sampled_from(["step", "evaluate", "end", "start", "device", "peer", "saving", "connected"])
    ours = st.tuples(kinds, documents(*keys)).map(lambda pair: json.dumps({**pair[1], "event": pair[0]}))
    return st.lists(st.one_of(event, ours, TEXTS), max_size=8).map("\n".join)
