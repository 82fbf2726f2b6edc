"""What `trainyard logs` prints: no command to a terminal, or every byte where that is asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from trainyard.cli import logs
from trainyard.kube.pod_log import Lines
from trainyard.trainings import run_logs

SAID = b"\x1b]52;c;ZXZpbA==\x07\x1b[31mred\n\r1/2\r2/2\n\xff\x00 caf\xc3\xa9\xe2\x80\xa8x\nlast words"


@pytest.mark.parametrize(
    ("options", "printed"),
    [([], "red\n2/2\n\ufffd caf\u00e9x\nlast words\n".encode()), (["--raw"], SAID), (["--raw", "--follow"], SAID)],
)
def test_a_log_as_it_is_printed(options: list[str], printed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines(stamped=False)
    found = [*lines.feed(SAID), *lines.rest()]
    monkeypatch.setattr(logs, "places", lambda _: SimpleNamespace(kubeconfig="", log_dir=""))
    monkeypatch.setattr(logs, "connect", lambda _: None)
    monkeypatch.setattr(run_logs, "find", lambda *_: None)
    for name in ("read", "follow"):
        monkeypatch.setattr(run_logs, name, lambda *_: iter(found))
    answer = CliRunner().invoke(logs.command, ["run", *options], obj=())
    assert (answer.exit_code, answer.stdout_bytes) == (0, printed)
