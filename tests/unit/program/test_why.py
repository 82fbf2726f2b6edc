"""`trainyard why`: its statuses, its JSON, and snapshots that are kept and judged again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.why.samples import look
from tests.unit.why.test_judge import TEXT, held
from tests.unit.why.test_snapshot import server
from trainyard.cli import why
from trainyard.cli.main import main
from trainyard.kube.api import Api
from trainyard.site.inventory import Places


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["why", *arguments])


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "places", lambda _: Places("kubeconfig", "logs", "tokens"))
    monkeypatch.setattr(why, "connect_to_look", lambda _: Api(server()))


def test_a_snapshot_is_judged_as_the_cluster_was(tmp_path: Path) -> None:
    file = tmp_path / "held.json"
    file.write_text(json.dumps(held().as_json()))
    done = call("mnist", "--from", str(file))
    assert (done.exit_code, done.output) == (1, f"{TEXT}\n")
    found = json.loads(call("mnist", "--from", str(file), "--json").output)
    assert found["findings"][0]["code"] == "held_by"
    file.write_text(json.dumps(look().as_json()))
    assert call("mnist", "--from", str(file)).exit_code == 0


def test_what_was_looked_at_is_kept(tmp_path: Path, site: None) -> None:
    file = tmp_path / "absent.json"
    done = call("mnst", "--snapshot", str(file))
    assert done.exit_code == 1
    assert done.output.startswith("there is no run mnst\ncause     absent       the runs are mnist\n")
    assert call("mnst", "--from", str(file)).output == done.output


def test_a_file_that_cannot_be_judged_is_no_cause(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[]")
    for name in ("other.json", "none.json"):
        done = call("mnist", "--from", str(tmp_path / name))
        assert done.exit_code == 2
        assert done.output.startswith("Error: ")


def test_a_cluster_that_does_not_answer_cannot_be_told(monkeypatch: pytest.MonkeyPatch, site: None) -> None:
    monkeypatch.setattr(why, "connect_to_look", lambda _: Api(lambda *_: (0, "connection refused")))
    done = call("mnist")
    assert done.exit_code == 2
    assert "The API server does not answer: connection refused" in done.output
