"""Code shared by the parts of the red team: an attacker's credentials, state that must not change, and open guards."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import inputs
import yaml
from drift_state import KINDS, KUBECTL, lasting
from stand import NAMESPACE, Stand
from timed import BenchError

from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api
from trainyard.kube.connection import connect
from trainyard.trainings import kept_logs, run_state

VERDICT_SECONDS = 900.0
WRITTEN = ("code", "logs", "tokens", "reprovision", "receipt.json", "known_hosts")
"""Parts of paths below the site's folder that its own programs write during normal use."""
OTHER_LABS = "/etc/cni/net.d/trainyard"
"""Networks of this machine, which come and go with the labs of parallel tests."""
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
OPEN_TEXT = """
import os, re, sys
os.environ["ANSIBLE_CONFIG"] = sys.argv[1] + "/ansible.cfg"
from trainyard.core import untrusted
untrusted._CONTROLS = untrusted._ESCAPES = re.compile("(?!)")
from trainyard.cli.main import main
main(sys.argv[2:], prog_name="trainyard")
"""
"""The program `trainyard` with an open gate for texts."""


def new_token(stand: Stand, user: str) -> str:
    """Create a login of a console user.

    :raises BenchError: the program fails.
    """
    said = dict(line.split(maxsplit=1) for line in stand.program("token", user)[1].splitlines() if " " in line)
    return Path(said["file"].strip()).read_text(encoding="utf-8").strip()


def as_user(stand: Stand, user: str, token: str) -> Api:
    """Return the API server for a user who has only a token."""
    known = yaml.safe_load((stand.state / "kubeconfig").read_text(encoding="utf-8"))
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "site", "cluster": known["clusters"][0]["cluster"]}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": user, "context": {"cluster": "site", "user": user}}],
        "current-context": user,
    }
    file = stand.folder / f"{user}.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return connect(str(file))


def hashes(folder: Path, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Return path -> SHA-256 of each file below a folder; for a link its target.

    :param without: parts of paths that are left out.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        if any(part in without for part in path.relative_to(folder).parts):
            continue
        if path.is_symlink():
            found[str(path)] = f"link to {path.readlink()}"
        elif path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def controller(stand: Stand) -> dict[str, str]:
    """Return hashes of files that an attacker might change: of the site, the inventory, /etc and the checkout."""
    etc = {name: each for name, each in hashes(Path("/etc")).items() if not name.startswith(OTHER_LABS)}
    found = hashes(stand.state, WRITTEN) | hashes(stand.inventory) | etc
    changed = subprocess.run(
        ["git", "-C", str(inputs.ROOT), "status", "--porcelain", "--untracked-files=all"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    return found | {"the checkout": changed}


def strange_logs(folder: Path, runs: tuple[str, ...], before: set[str]) -> list[str]:
    """Return new files in the folder of kept logs that are not in a folder of one of the attacker's runs."""
    allowed = tuple(f"{NAMESPACE}-{run}" for run in runs)
    new = set(hashes(folder)) - before if folder.is_dir() else set()
    return sorted(path for path in new if Path(path).relative_to(folder).parts[0] not in allowed)


def others(stand: Stand) -> dict[str, str]:
    """Return the objects and pods of all other namespaces, and cluster-scoped ones, as text."""
    said = stand.on_node("cp1", "sh", "-c", f"{KUBECTL} get {KINDS} --all-namespaces --output=json")
    pods = stand.on_node("cp1", "sh", "-c", f"{KUBECTL} get pods --all-namespaces --output=json")
    return foreign([*json.loads(said)["items"], *json.loads(pods)["items"]])


def foreign(items: list[dict[str, Any]]) -> dict[str, str]:
    """Return `Kind namespace/name` -> lasting state of objects outside the attacker's namespace, or pod restarts."""
    found = {}
    for each in items:
        meta = each["metadata"]
        if meta.get("namespace") == NAMESPACE:
            continue
        name = f"{each['kind']} {meta.get('namespace', '')}/{meta['name']}"
        if each["kind"] == "Pod":
            states = each.get("status", {}).get("containerStatuses") or []
            found[name] = f"{meta['uid']} restarted {sum(one['restartCount'] for one in states)} times"
        else:
            found[name] = json.dumps(lasting(each), sort_keys=True)
    return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what was changed, added or removed, a sentence each."""
    words = {(True, False): "is gone", (False, True): "is new", (True, True): "was changed"}
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return [f"{name} {words[name in before, name in after]}" for name in names]


def verdict(stand: Stand) -> tuple[str, list[str]]:
    """Return the verdict of the site, and the names of the checks that do not pass."""
    command = [sys.executable, "-m", "trainyard", "-i", str(stand.inventory), "verify"]
    done = subprocess.run(
        command, cwd=stand.root, capture_output=True, text=True, check=False, timeout=VERDICT_SECONDS,
        stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": stand.source},
    )  # fmt: skip
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise BenchError(f"trainyard verify said no JSON: {done.stdout[-500:]}{done.stderr[-2000:]}") from None
    (stand.folder / "verify.log").write_text(done.stderr, encoding="utf-8")
    return str(found["verdict"]), sorted(each["name"] for each in found["checks"] if each["result"] != "pass")


def amiss(said: str) -> list[str]:
    """Return faults that no output of a program may have."""
    found = [f"the byte {CONTROLS.findall(said)[0]!r}"] if CONTROLS.search(said) else []
    return found + (["a traceback"] if "Traceback" in said or "MarkupError" in said else [])


def open_program(stand: Stand, *arguments: str) -> str:
    """Return the output of the program `trainyard` without the gate for texts."""
    command = [sys.executable, "-c", OPEN_TEXT, str(inputs.ROOT), "-i", str(stand.inventory), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    return (done.stdout + done.stderr).decode(errors="replace")


@contextmanager
def open_paths() -> Iterator[None]:
    """Remove the gate of paths of kept logs: any annotation becomes a part of a path."""

    def join(folder: str, *parts: Any) -> str:
        return os.path.join(folder, *map(str, parts))

    def anywhere(folder: str, *parts: Any, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
        os.makedirs(os.path.dirname(join(folder, *parts)), exist_ok=True)
        os.makedirs(join(folder, parts[0]), exist_ok=True)
        return os.open(join(folder, *parts), flags, mode)

    with (
        mock.patch.object(run_state, "checked_attempt", str),
        mock.patch.object(kept_logs, "path_below", join),
        mock.patch.object(kept_logs, "open_below", anywhere),
    ):
        yield


def tried(what: str, wrong: list[str], do: Callable[[], list[str]]) -> None:
    """Run one action, and record its faults; an error is recorded, too."""
    try:
        found = do()
    except (BenchError, TrainyardError, subprocess.SubprocessError, OSError, LookupError, ValueError) as error:
        found = [f"{type(error).__name__}: {error}"]
    print(f"{what}: {'; '.join(found) or 'as it should be'}", flush=True)
    wrong += [f"{what}: {each}" for each in found]
