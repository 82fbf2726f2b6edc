"""The limits of harm, and what counts as an approval of passing them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.drift import repair_plan
from trainyard.site import schedule

ITEMS = [{"key": "b", "class": "repairable"}, {"key": "a", "class": "person"}]
REPORT = {"id": "20270304T031000Z-ab12", "state": "complete", "revision": {"commit": "3f2a91c"}, "items": ITEMS}
APPROVED = repair_plan.approve(REPORT, 1000.0, "alice")


@pytest.mark.parametrize(
    ("value", "hosts", "allowed"),
    [("20%", 3, 1), ("20%", 9, 1), ("20%", 10, 2), ("1%", 500, 5), ("100%", 7, 7), (3, 100, 3), ("2", 100, 2)],
)
def test_a_share_is_at_least_one_host(value: str | int, hosts: int, allowed: int) -> None:
    assert schedule.share(value, hosts) == allowed


@pytest.mark.parametrize("value", ["0%", "101%", 0, "-1", "0", "few", "", "12.5%"])
def test_a_share_that_cannot_be(value: str | int) -> None:
    with pytest.raises(TrainyardError, match="the limit is"):
        schedule.share(value, 10)


@pytest.mark.parametrize(
    ("drifted", "items", "said"),
    [
        (0, 0, ""),
        (2, 50, ""),
        (3, 3, "3 of 10 hosts have drifted, and reprovision_max_hosts (20%) allows 2"),
        (6, 6, "6 of 10 hosts"),
        (1, 51, "51 items to repair"),
        # The cluster's own objects are on no host.
        (0, 51, "51 items to repair"),
    ],
)
def test_more_than_a_run_may_change(drifted: int, items: int, said: str) -> None:
    names = [f"h{number}" for number in range(drifted)]
    found = schedule.too_much(hosts=10, drifted=names, items=items, max_hosts="20%", max_items=50)
    assert said in found if said else found == ""


@pytest.mark.parametrize(
    ("hosts", "missing", "refused"), [(3, 0, False), (3, 1, False), (3, 2, True), (20, 2, False), (20, 3, True)]
)
def test_hosts_that_do_not_answer(hosts: int, missing: int, refused: bool) -> None:
    names = [f"h{number}" for number in range(missing)]
    found = schedule.too_many_missing(hosts=hosts, unreachable=names, max_unreachable="10%")
    assert bool(found) is refused


@pytest.mark.parametrize(
    ("converges", "back"),
    [
        ([], False),
        ([{"k"}, {"k"}], False),
        ([{"k"}, {"k"}, {"k", "l"}], True),
        ([{"k"}, {"k"}, set()], False),
        ([{"k"}, {"k"}, {"k"}, set(), {"k"}, {"k"}], False),
        ([set(), {"k"}, {"k"}, {"k"}], True),
    ],
)
def test_an_item_that_comes_back(converges: list[set[str]], back: bool) -> None:
    assert schedule.comes_back("k", converges, 3) is back


@pytest.mark.parametrize(
    ("keys", "commit", "now", "said"),
    [
        (["a", "b"], "3f2a91c", 1000.0, ""),
        (["b", "a"], "3f2a91c", 1000.0 + 86400, ""),
        (["a", "b"], "3f2a91c", 1001.0 + 86400, "valid for 24 h"),
        (["a", "b"], "3f2a91c", 999.0, "valid for 24 h"),
        (["a", "b", "c"], "3f2a91c", 1000.0, "1 added, 0 gone"),
        (["a"], "3f2a91c", 1000.0, "0 added, 1 gone"),
        (["a", "b"], "ffffff", 1000.0, "for the revision 3f2a91c"),
    ],
)
def test_what_an_approval_lets_pass(keys: list[str], commit: str, now: float, said: str) -> None:
    found, reason = repair_plan.find([APPROVED], keys, commit, now, 24)
    assert (found, reason) == (APPROVED, "") if not said else found is None and said in reason


def test_an_approval_counts_once(tmp_path: Path) -> None:
    repair_plan.save(tmp_path, APPROVED)
    (held,) = repair_plan.load(tmp_path)
    assert held == APPROVED
    repair_plan.use(tmp_path, held, 2000.0)
    found, reason = repair_plan.find(repair_plan.load(tmp_path), ["a", "b"], "3f2a91c", 2000.0, 24)
    assert found is None
    assert "has been used" in reason
    assert repair_plan.find([], ["a"], "3f2a91c", 0.0, 24) == (None, "no report is approved")


def test_an_approval_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    repair_plan.save(tmp_path, APPROVED)
    (tmp_path / "approvals" / "broken.json").write_text('{"report": ', encoding="utf-8")
    # Another one still counts.
    assert repair_plan.find(repair_plan.load(tmp_path), APPROVED.keys, APPROVED.commit, 2000.0, 24) == (APPROVED, "")
    path = tmp_path / "approvals" / f"{APPROVED.report}.json"
    assert "fault" not in path.read_text(encoding="utf-8")
    path.unlink()
    (tmp_path / "approvals" / "loop.json").symlink_to("loop.json")
    found, reason = repair_plan.find(repair_plan.load(tmp_path), ["a"], "3f2a91c", 2000.0, 24)
    assert (found, reason) == (None, "the approval of broken cannot be read: it is not an approval")
    (tmp_path / "approvals" / "broken.json").unlink()
    _, reason = repair_plan.find(repair_plan.load(tmp_path), ["a"], "3f2a91c", 2000.0, 24)
    assert reason.startswith("the approval of loop cannot be read: Too many")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "interrupted"}, "was interrupted"),
        ({"state": "running"}, "was running"),
        ({"revision": {"commit": ""}}, "has no revision"),
        ({"items": [{"key": "a", "class": "person"}]}, "nothing that a converge would repair"),
        ({"items": []}, "nothing that a converge would repair"),
    ],
)
def test_a_report_that_cannot_be_approved(change: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainyardError, match=said):
        repair_plan.approve(REPORT | change, 0.0, "alice")


def test_a_name_that_leads_elsewhere_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match="is not a report"):
        repair_plan.save(tmp_path, repair_plan.approve(REPORT | {"id": "../../etc/x"}, 0.0, "alice"))
