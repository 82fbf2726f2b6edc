"""Every command under every fault: an exit code of the table, one line, no traceback, valid JSON."""

from __future__ import annotations

import base64
import http.server
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.unit.certificates import pair_file, self_signed, tls_server
from trainyard.cli import console, gpus, logs, terminal, token, trainings, why
from trainyard.cli.main import EXIT_CANNOT_TELL, EXIT_INTERRUPTED, main
from trainyard.kube import api
from trainyard.site.inventory import Places
from trainyard.trainings import runs as runs_of_cluster

SERVER, EXPIRED = self_signed(), self_signed(days=(-9, -1))
CALLS = [
    ["trainings"], ["trainings", "--json"], ["gpus"], ["gpus", "--json"], ["why", "mnist"], ["why", "mnist", "--json"],
    ["logs", "mnist"], ["logs", "mnist", "-f"], ["token", "alice"], ["console"],
]  # fmt: skip
MODULES = (trainings, gpus, why, logs, token, console)
HTML = b"<!doctype html>\x1b[2J<title>Log in</title>"
ANSWERS: dict[str, tuple[int, bytes]] = {
    "403": (403, b'{"kind":"Status","message":"you may not\\u001b[31m"}'),
    "500": (500, b'{"kind":"Status","message":"no etcd"}'),
    "html": (200, HTML), "html and 502": (502, HTML), "empty": (200, b""), "null": (200, b"null"),
    "a number": (200, b"7"), "a list": (200, b"[]"), "no items": (200, b"{}"),
    "items of text": (200, b'{"items":["x"],"resources":["x"]}'),
    "nested": (200, b"[" * 100_000), "latin-1": (200, b'{"items": "\xe9'), "100 MB": (200, b""),
}  # fmt: skip


class Says(http.server.BaseHTTPRequestHandler):
    """Gives the same answer to everything."""

    status, body, much = 200, b"", 0

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(self.much or len(self.body)))
        self.end_headers()
        try:
            self.wfile.write(self.body)
            for _ in range(0, self.much, 2**20):
                self.wfile.write(b" " * 2**20)
        except OSError:
            self.close_connection = True

    do_POST = do_PATCH = do_DELETE = do_GET

    def log_message(self, *arguments: object) -> None:
        return


def kubeconfig(folder: Path, url: str, authority: str = SERVER[0]) -> Path:
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority.encode()).decode()}
    context = {"name": "here", "context": {"cluster": "one", "user": "me"}}
    known = {"clusters": [{"name": "one", "cluster": cluster}], "users": [{"name": "me", "user": {"token": "x"}}]}
    file = folder / "kubeconfig"
    file.write_text(json.dumps({"current-context": "here", "contexts": [context], **known}))
    return file


@contextmanager
def fault(name: str, folder: Path) -> Iterator[Path]:
    """A kubeconfig whose API server has a fault."""
    if name == "no kubeconfig":
        yield folder / "nowhere"
    elif name == "damaged":
        (folder / "kubeconfig").write_text("\x00[")
        yield folder / "kubeconfig"
    elif name == "away":
        yield kubeconfig(folder, "https://127.0.0.1:9")
    elif name == "expired":
        with tls_server(Says, pair_file(folder / "pair", *EXPIRED)) as url:
            yield kubeconfig(folder, url, EXPIRED[0])
    else:
        status, body = ANSWERS[name]
        much = 100 * 2**20 if name == "100 MB" else 0
        with tls_server(
            type("One", (Says,), {"status": status, "body": body, "much": much}), pair_file(folder / "pair", *SERVER)
        ) as url:
            yield kubeconfig(folder, url)


FAULTS = ("no kubeconfig", "damaged", "away", "expired", *ANSWERS)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    monkeypatch.setattr(api, "MOST_BYTES", 2**24)

    def made(words: list[str], config: Path) -> Result:
        for module in MODULES:
            monkeypatch.setattr(
                module, "places", lambda _: Places(str(config), str(tmp_path / "logs"), str(tmp_path / "tokens"))
            )
        return CliRunner().invoke(main, words)

    return made


@pytest.mark.parametrize("name", FAULTS)
def test_a_command_under_a_fault_ends_by_the_table(call: Callable[..., Result], tmp_path: Path, name: str) -> None:
    with fault(name, tmp_path) as config:
        for words in CALLS:
            done = call(words, config)
            seen = (name, words, done.output)
            assert done.exit_code == EXIT_CANNOT_TELL, seen
            assert isinstance(done.exception, SystemExit) and "Traceback" not in done.output, seen
            assert "Error: " in done.stderr and done.stdout == "", seen
            assert not set(map(ord, done.output)) & {*range(9), 11, 12, *range(14, 32)}, seen


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), EXIT_INTERRUPTED), (KeyError("a\x1b"), EXIT_CANNOT_TELL)]
)
def test_an_error_that_no_command_expects(
    call: Any, monkeypatch: Any, tmp_path: Path, error: BaseException, status: int
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(trainings, "connect_to_look", fail)
    done = call(["trainings"], tmp_path)
    assert (done.exit_code, done.stdout) == (status, "")
    assert "\x1b" not in done.stderr and (status == EXIT_INTERRUPTED or "--debug" in done.stderr)
    if isinstance(error, Exception):
        assert call(["--debug", "trainings"], tmp_path).exception is error


def test_json_of_a_run_that_has_diverged_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_json({"schema": 1, "loss": math.nan, "rate": math.inf, "why": "a\x1b[31mb"})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "schema": 1,
        "loss": None,
        "rate": None,
        "why": "ab",
    }


HOSTILE = "[/x] [bold]\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202e\x9b31m"


def row(**changes: Any) -> runs_of_cluster.Row:
    known = {
        "run": "mnist",
        "namespace": "t",
        "workload": HOSTILE,
        "state": HOSTILE,
        "why": HOSTILE,
        "step": None,
        "steps": None,
    }
    return runs_of_cluster.Row(**{**known, "accuracy": None, "age": None, "pods": 0, "wanted": 0, "gpus": 0, **changes})


def test_a_table_shows_texts_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    trainings.show([row()], terminal.Terminal())
    out = capsys.readouterr().out
    assert "[/x] [bold]" in out and not set(out) & set("\x1b\x07\u202e\x9b")


def test_a_sentence_is_printed_without_commands_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.echo(HOSTILE)
    terminal.echo(HOSTILE, err=True)
    terminal.line(HOSTILE)
    printed = capsys.readouterr()
    shown = "[/x] [bold]31m\n"
    assert (printed.out, printed.err) == (shown * 2, shown)
