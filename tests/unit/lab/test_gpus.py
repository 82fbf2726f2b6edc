"""GPUs that hosts of the lab seem to have: who is given how many, and when again."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.lab import lab_model, simulated_gpus

PARAMETERS = {
    "name": "lab",
    "subnet": "10.99.0.0/24",
    "nodes": {"one": "10.99.0.21", "two": "10.99.0.22"},
    "volumes": [],
}
GPUS = {"counts": {"one": 2, "two": "0"}, "profile": "A100", "driver": "580.95.05", "cuda": "13.0"}
RUNNING = {"one": "running", "two": "running"}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    folder.mkdir()
    for name in (*simulated_gpus.PARTS, "lab-gpus"):
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What podman was asked."""
    calls: list[tuple[str, ...]] = []

    def podman(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        calls.append(arguments)
        return subprocess.CompletedProcess(arguments, 0, "", "")

    monkeypatch.setattr(simulated_gpus, "podman", podman)
    return calls


def lab(state_dir: Path, folder: Path, kinds: dict[str, str] | None = None, **changed: Any) -> lab_model.Lab:
    plain = lab_model.parse({**PARAMETERS, "state_dir": str(state_dir / "lab"), "kinds": kinds})
    return replace(plain, gpus=simulated_gpus.parse({**GPUS, "folder": str(folder), **changed}))


def do(this: lab_model.Lab, states: dict[str, str]) -> list[str]:
    steps = simulated_gpus.plan(this, states)
    for step in steps:
        step.act()
    return [step.what for step in steps]


def test_a_host_is_given_its_gpus_once(tmp_path: Path, made: Path, asked: list[tuple[str, ...]]) -> None:
    this = lab(tmp_path, made)
    given = ["Install 2 GPUs of the lab on one (A100, driver 580.95.05)"]
    assert do(this, RUNNING) == given
    assert asked[0] == ("cp", "-", "lab-one:/")
    assert asked[1][:5] == ("exec", "lab-one", "/usr/local/sbin/lab-gpus", "install", "2")
    assert asked[1][5:] == ("--profile=A100", "--driver=580.95.05", "--cuda=13.0", "--seed=lab-one")
    assert do(this, RUNNING) == []
    assert do(this, {**RUNNING, "one": "absent"}) == given, "a host that is made anew has none"


@pytest.mark.parametrize("changed", [{"counts": {"one": 1}}, {"profile": "T4"}, {"driver": "580.126.09"}])
def test_other_gpus_are_given_anew(
    changed: dict[str, Any], tmp_path: Path, made: Path, asked: list[tuple[str, ...]]
) -> None:
    do(lab(tmp_path, made), RUNNING)
    (what,) = do(lab(tmp_path, made, **changed), RUNNING)
    assert what.startswith("Install ")


def test_gpus_are_taken_again(tmp_path: Path, made: Path, asked: list[tuple[str, ...]]) -> None:
    do(lab(tmp_path, made), RUNNING)
    without = lab(tmp_path, Path("/nonexistent"), counts={})
    assert do(without, RUNNING) == ["Remove the GPUs from one"]
    assert asked[-1][3:5] == ("install", "0")
    assert do(without, RUNNING) == []


def test_a_node_that_is_made_anew_forgets(tmp_path: Path, made: Path, asked: list[tuple[str, ...]]) -> None:
    this = lab(tmp_path, made)
    do(this, RUNNING)
    simulated_gpus.forget(this, this.nodes[0])
    assert len(simulated_gpus.plan(this, RUNNING)) == 1


def test_without_the_library_it_is_refused_when_it_is_needed(tmp_path: Path) -> None:
    steps = simulated_gpus.plan(lab(tmp_path, tmp_path / "nothing"), RUNNING)
    with pytest.raises(TrainyardError, match="does not contain the GPUs"):
        steps[0].act()


def test_a_machine_is_refused(tmp_path: Path, made: Path) -> None:
    with pytest.raises(TrainyardError, match="one is an emulated machine, which cannot have 2 GPUs"):
        simulated_gpus.plan(lab(tmp_path, made, kinds={"one": "machine"}), RUNNING)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"counts": {"one": 17}}, "lab_gpus of one is 17"),
        ({"driver": "580"}, "lab_gpu_driver is '580'"),
        ({"cuda": "13"}, "lab_gpu_cuda is '13'"),
    ],
)
def test_what_is_no_number_or_version_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainyardError, match=message):
        simulated_gpus.parse({**GPUS, **changed})
    assert simulated_gpus.parse({"counts": {"one": 0}}).counts == {"one": 0}
