"""`trainyard console` without a node port: the ports that kubectl forwards, and which kubectl."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.cli import console
from trainyard.core.errors import TrainyardError
from trainyard.site.inventory import Places


def test_ports_are_forwarded_as_the_pages_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho Forwarding\necho Handling\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    where = Places("/k", "logs", "tokens", str(tmp_path / "site"))
    assert console.forward(where, (8443, 8444)) == 3
    asked = "--kubeconfig=/k --namespace=trainyard-console port-forward service/console 8443:8443 8444:8444\n"
    assert (tmp_path / "asked").read_text() == asked
    assert capsys.readouterr().out == "https://localhost:8443/  (ends with Ctrl-C)\n"
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(TrainyardError, match=r"no kubectl.*Run site\.yml, which copies it to site_dir/bin"):
        console.forward(where, (8443, 8444))


def test_the_sites_own_kubectl_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("bin", "site/bin"):
        program = tmp_path / folder / "kubectl"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho $0 > {tmp_path}/ran\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin:/usr/bin")
    where = Places("/k", "logs", "tokens", str(tmp_path / "site"))
    assert console.forward(where, (8443, 8444)) == 0
    assert (tmp_path / "ran").read_text() == f"{tmp_path}/site/bin/kubectl\n"
    # One that is no program, such as a copy that was cut off, is left out.
    (tmp_path / "site/bin/kubectl").chmod(0o644)
    assert console.forward(where, (8443, 8444)) == 0
    assert (tmp_path / "ran").read_text() == f"{tmp_path}/bin/kubectl\n"
