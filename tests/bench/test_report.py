"""Tests of the benchmark's input and output of text; the measures themselves are not tested."""

from __future__ import annotations

from pathlib import Path

import memory
import pytest
import report
import sides
from sides import Peak, Result, Site

LOG = """\
PLAY [Site] ****
mirror : Push the images of the bundle ------------------------ 99.99s

PLAY RECAP *********************************************************************
cp1                        : ok=31   changed=20   unreachable=0    failed=0    skipped=3

Saturday 21 November 2026  15:30:00 +0000 (0:00:01.000)       0:01:40.000 ******
===============================================================================
mirror : Push the images of the bundle -------------------------------------------------- 20.50s
base : Install packages ------------------------------------------------------------------ 12.00s
mirror : pki | Create the folders --------------------------------------------------------- 1.50s
Refuse bad input -------------------------------------------------------------------------- 0.25s
"""


def test_profile_reads_the_end_of_the_log() -> None:
    tasks = report.profile(LOG)
    assert tasks[0] == ("mirror : Push the images of the bundle", 20.5)
    assert len(tasks) == 4
    assert report.by_role(tasks) == [("mirror", 22.0), ("base", 12.0), (report.NO_ROLE, 0.25)]


@pytest.mark.parametrize(
    ("values", "text"),
    [([], "-"), ([3.0], "3.0 s (3.0 to 3.0)"), ([4.0, 1.0, 2.5], "2.5 s (1.0 to 4.0)")],
)
def test_spread_is_median_and_range(values: list[float], text: str) -> None:
    assert report.spread(values) == text


def test_each_profile_is_that_of_its_own_median_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "machine", lambda: ["- Machine: none"])
    results = []
    for number, (first, second) in enumerate([(100.0, 30.0), (120.0, 20.0), (150.0, 25.0)]):
        for name in (f"site-{number}.log", f"site-{number}-second.log"):
            (tmp_path / name).write_text(LOG, encoding="utf-8")
        log = str(tmp_path / f"site-{number}.log")
        results.append(Result(Site.name, first, Peak(), 0.95, log, 0.1, second=second))
    text = report.render(results)
    assert "## Where the time of the first run goes\n\nThe run of median length, 120.0 s." in text
    assert "## Where the time of the second run goes\n\nThe run of median length, 25.0 s." in text


def test_table_escapes_bars() -> None:
    assert report.table(["a"], [["x | y"]]).splitlines()[-1] == r"| x \| y |"


def test_insert_leaves_the_rest_alone() -> None:
    document = f"# A\n\n{report.BEGIN}\nold\n{report.END}\n\nkept\n"
    assert report.insert(document, "new") == f"# A\n\n{report.BEGIN}\nnew\n{report.END}\n\nkept\n"


def test_insert_refuses_a_document_without_markers() -> None:
    with pytest.raises(ValueError, match="once each"):
        report.insert("# A\n", "new")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "memory.usage_in_bytes": "1000\n",
                "memory.stat": "rss 1\ntotal_inactive_file 300\ntotal_rss 500\ntotal_mapped_file 50\n",
            },
            (700, 550),
        ),
        ({"memory.current": "1000\n", "memory.stat": "inactive_file 400\nanon 450\nfile_mapped 30\n"}, (600, 480)),
    ],
    ids=["version1", "version2"],
)
def test_memory_of_a_control_group(tmp_path: Path, files: dict[str, str], expected: tuple[int, int]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    assert memory.measure(tmp_path) == expected


def test_the_seeds_run_is_the_one_whose_manifests_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def timed(argv: list[str], log: Path, limit: float, **more: Path) -> float:
        given.extend(path.name for path in more.values())
        log.write_text('{"event": "end", "step": 200}\n', encoding="utf-8")
        return 2.0

    monkeypatch.setattr(sides, "timed", timed)
    assert sides.seed_run("lab", tmp_path, tmp_path / "log") == 4.0
    assert given == ["seed-around.json", "seed-jobset.json"]
