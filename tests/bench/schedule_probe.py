"""Print the remnants of a schedule's runs on its host as a JSON document. Runs there with Python's standard library.

python3 schedule_probe.py /var/lib/trainyard-reprovision trainyard-reprovision
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TEMPORARY = (".new-", ".trainyard-")
"""Name prefixes of files that were not written completely."""
LOCK = "trainyard.lock"
SETTINGS = Path("/etc/trainyard/reprovision")


def look(folder: Path, places: tuple[Path, ...], owner: int, proc: Path = Path("/proc")) -> dict[str, Any]:
    """Return reports, sizes, remnants, broken documents and processes of a schedule.

    :param folder: folder of the schedule.
    :param places: folders for temporary files.
    :param owner: user id of the schedule.
    """
    state = folder / "site" / "reprovision"
    sizes = [found.st_size for path in _all(state) if (found := _stat(path)) and stat.S_ISREG(found.st_mode)]
    left = [str(path) for path in _all(folder) if path.name.startswith(TEMPORARY) or path.is_socket()]
    left += [str(path) for path in _all(folder / "worktrees")]
    repository = folder / "git" / "repository.git"
    left += [str(path) for path in _all(repository) if path.suffix == ".lock" and path.name != LOCK]
    for place in places:
        left += [str(path) for path in _all(place) if (found := _stat(path)) and found.st_uid == owner]
    documents = [path for place in (folder / "site", SETTINGS) for path in _all(place) if path.suffix == ".json"]
    return {
        "reports": [_read(path) for path in sorted(state.glob("runs/*/report.json"))],
        "files": len(sizes),
        "bytes": sum(sizes),
        "left": sorted(set(left)),
        "broken": [str(path) for path in documents if _read(path) is None and path.exists()],
        "processes": [name for name, uid in _processes(proc) if uid == owner],
    }


def _all(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder; nothing if it is missing."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files))


def _stat(path: Path) -> os.stat_result | None:
    """Return the status of a file or link; None if a run has removed it meanwhile."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _processes(proc: Path) -> Iterator[tuple[str, int]]:
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield f"{entry.name} {words.strip()}", entry.stat().st_uid
            except OSError:
                continue  # it has ended


if __name__ == "__main__":
    import pwd

    found = look(
        Path(sys.argv[1]), (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")), pwd.getpwnam(sys.argv[2]).pw_uid
    )
    print(json.dumps(found))
