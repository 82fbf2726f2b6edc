"""Search for a login's token in all places where it must not be: only its own file may contain it."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from console_stand import LIMIT, OPERATOR, RUN, Visit, ask, path_of
from stand import NAMESPACE
from timed import BenchError

PIECE = 40
"""Characters of a token's signature that are searched at a time: a wrapped or truncated line still has whole pieces."""
SAMPLE_SECONDS = 0.02
PART = 1 << 20
"""Bytes of a file that are read at a time."""
SPACE = "trainyard-console"
PAGES = ("/", path_of(RUN), "/nodes", "/receipts", "/cluster", f"/cluster/core/v1/pods?namespace={NAMESPACE}", "/about")
WITHOUT_JSON = ("/",)
"""Its JSON is that of `/runs`."""


def needles(token: str) -> list[str]:
    """Return texts that reveal a token: pieces of its signature, plain and as encoded in a Secret.

    The two parts before the signature identify the user, and are not secret.
    """
    signature = token.rpartition(".")[2]
    pieces = [signature[place : place + PIECE] for place in range(0, len(signature) - PIECE + 1, PIECE)]
    if not pieces:
        raise ValueError("a signature that is shorter than a piece of it")
    # Three characters become four of base64, so there are three possible alignments.
    coded = [base64.b64encode(f"{' ' * shift}{signature}".encode())[4:-4].decode() for shift in range(3)]
    return [*pieces, *(each[place : place + PIECE] for each in coded for place in range(0, len(each) - PIECE, PIECE))]


def texts_with(token: str, texts: Mapping[str, str]) -> list[str]:
    """Return the names of the texts that reveal a token."""
    wanted = needles(token)
    return [name for name, text in texts.items() if any(each in text for each in wanted)]


def files_with(token: str, folders: Iterable[Path]) -> tuple[int, list[Path]]:
    """Return the number of files read below some folders, and the files that reveal a token.

    :raises OSError: a file cannot be read.
    """
    wanted = [each.encode() for each in needles(token)]
    read, found = 0, []
    for path in sorted({each for folder in folders for each in folder.rglob("*")}):
        if path.is_symlink() or not path.is_file():
            continue
        read += 1
        if any(each in part for part in _parts(path) for each in wanted):
            found.append(path)
    return read, found


def _parts(path: Path) -> Iterator[bytes]:
    """Yield a file's content in parts, each with the end of the previous one, where a piece may begin."""
    end = b""
    with path.open("rb") as stream:
        while content := stream.read(PART):
            yield end + content
            end = content[-PIECE:]


@contextmanager
def processes() -> Iterator[set[str]]:
    """Collect every command line visible on this machine during the context."""
    seen: set[str] = set()
    over = threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLE_SECONDS):
            # No limit on the width, because the token would be cut off.
            done = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True, timeout=30)
            seen.update(done.stdout.splitlines())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join(LIMIT)


def canary(visit: Visit) -> str:
    """Create, use and revoke a token, and check that it is only in its own file."""
    with processes() as seen:
        token = visit.token(OPERATOR)
    if not any("trainyard" in line and line.endswith(f"token {OPERATOR}") for line in seen):
        raise BenchError("The list of processes does not show the program that makes the token.")
    texts = {"the list of processes": "\n".join(seen)}
    page = visit.window(OPERATOR, token)
    for path in PAGES:
        answer = page.goto(path)
        if answer is None or answer.status != 200 or page.get_by_label("Token").count():
            raise BenchError(f"The page {path} does not answer as one of somebody who is logged in.")
        texts[f"the page {path}"] = page.content()
        status, texts[f"the JSON of {path}"] = ask(page, f"/api/v1{'/runs' if path in WITHOUT_JSON else path}")
        if status != 200:
            raise BenchError(f"The JSON of {path} is answered with {status}.")
    texts["the cookies"] = json.dumps(page.context.cookies())
    texts["trainyard why"] = visit.stand.answer("why", RUN)[1] + visit.stand.answer("why", RUN, "--json")[1]
    page.context.close()
    named = visit.logins[OPERATOR]
    confirmed = ("-e", f"console_token={named}", "-e", f"console_confirm={named}")
    texts["the diff of its end"] = visit.stand.play("playbooks/console_revoke.yml", "--diff", *confirmed)[1]
    texts |= of_cluster(visit)
    own = visit.files[OPERATOR]
    read, found = files_with(token, (visit.stand.state, visit.stand.folder))
    if own not in found:
        raise BenchError(f"The search does not even find the token in its own file, {own}.")
    bad = [*texts_with(token, texts), *(str(path) for path in found if path != own)]
    if bad:
        raise BenchError(f"The token is in {', '.join(bad)}.")
    where = f"{read - 1} other files, {len(PAGES)} pages, logs, receipts, Secrets, events, {len(seen)} command lines"
    return f"it is in its own file, and in none of {where}"


def of_cluster(visit: Visit) -> dict[str, str]:
    """Return logs of the console, and objects that may hold texts: receipts, records, Secrets."""
    api = visit.stand.api
    pods = [pod["metadata"]["name"] for pod in api.list("v1", "Pod", SPACE)]
    logs = {f"the log of {name}": api.log(SPACE, name) for name in pods}
    if not any(logs.values()):
        raise BenchError("The console has no log that could be looked at.")
    return logs | {f"the {kind}s": json.dumps(api.list("v1", kind)) for kind in ("ConfigMap", "Secret", "Event")}
