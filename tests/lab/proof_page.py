"""The table of docs/reference/proof.md: the last run of each part, and its age in commits and days.

`python -m tests.lab.proof_page` prints the ages, the oldest first; with the word `oldest`, only that part's name.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "proof.md"
HEAD = "| --- | --- | --- | --- | --- | --- |\n"
ROW = re.compile(
    r"^\| (?P<part>[a-z_]+) \| (?P<date>\d{4}-\d\d-\d\d) \| (?P<commit>[0-9a-f]*) \|(?P<rest>.*)\|$", re.MULTILINE
)
GIT_TIMEOUT = 30.0


@dataclass(frozen=True)
class Age:
    """Age of a part's last run.

    :param days: since its date; None if it never passed.
    :param commits: since its commit; None if the commit is unknown here, as in a shallow clone.
    """

    part: str
    days: int | None = None
    commits: int | None = None

    def __str__(self) -> str:
        if self.days is None:
            return f"{self.part:16} never"
        commits = "unknown" if self.commits is None else str(self.commits)
        return f"{self.part:16} {commits:>7} commits {self.days:>4} days"


def with_row(page: str, part: str, row: str) -> str:
    """Return the page with the part's line in its table; it replaces the line of its last run."""
    # Use the page's last table; others may have the same number of columns.
    head, begin, table = page.rpartition(HEAD)
    rows = {found["part"]: found[0] for found in ROW.finditer(table)} | {part: row}
    return head + begin + "".join(f"{rows[name]}\n" for name in sorted(rows))


def ages(page: str, parts: list[str], today: date) -> list[Age]:
    """Return the ages of all parts, the oldest first; parts that never passed come before them."""
    rows = {found["part"]: found for found in ROW.finditer(page.rpartition(HEAD)[2])}
    found = []
    for part in parts:
        row = rows.get(part)
        days = (today - date.fromisoformat(row["date"])).days if row else None
        found.append(Age(part, days, _commits_since(row["commit"]) if row else None))
    return sorted(found, key=lambda age: (age.days is not None, -(age.commits or 0), -(age.days or 0), age.part))


def head() -> str:
    """Return the short name of the checkout's commit; empty without git."""
    return _git("rev-parse", "--short=8", "HEAD")


def _commits_since(commit: str) -> int | None:
    count = _git("rev-list", "--count", f"{commit}..HEAD") if commit else ""
    return int(count) if count.isdigit() else None


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False, timeout=GIT_TIMEOUT
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def main() -> None:
    from tests.lab.test_proof import PROGRAMS, SCENARIOS

    page = PAGE.read_text(encoding="utf-8")
    found = ages(page, [*SCENARIOS, *PROGRAMS], datetime.now(UTC).date())
    if sys.argv[1:] == ["oldest"]:
        print(found[0].part)
    else:
        print("Last runs of the parts, the oldest first:", *found, sep="\n")


if __name__ == "__main__":
    main()
