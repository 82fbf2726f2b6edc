"""GPUs field by field, as the real nvidia-smi printed them on three machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.gpu import smi

RECORDS = Path(__file__).parent / "records"
NAMES = sorted(path.stem for path in RECORDS.glob("*.xml"))


def record(name: str) -> tuple[str, dict]:
    return (RECORDS / f"{name}.xml").read_text(), json.loads((RECORDS / f"{name}.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_a_record(name: str) -> None:
    text, wanted = record(name)
    found = smi.read(text).facts()
    assert {key: found[key] for key in ("driver", "cuda")} == {key: wanted[key] for key in ("driver", "cuda")}
    assert found["gpus"] == wanted["gpus"]
    assert found["source"] == "nvidia-smi"


def test_there_are_records_of_each_version_of_the_xml() -> None:
    assert {(RECORDS / f"{name}.xml").read_text().partition("nvsmi_device_")[2][:3] for name in NAMES} == {
        "v11",
        "v12",
        "v13",
    }


def test_the_compute_capability_comes_from_its_own_question() -> None:
    text, _ = record("t4")
    (gpu,) = smi.read(text, "GPU-d37e67a5-91dd-3774-a5cb-99096249601a, 7.5\nGPU-other, 8.0\n").gpus
    assert gpu.compute_capability == "7.5"


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("t4", "<dram_uncorrectable>0<", "<dram_uncorrectable>3<", "3 uncorrectable memory errors"),
        ("a100_mig", "<reset_required>No<", "<reset_required>Yes<", "asks for: reset"),
        ("a100_mig", "recommended>No<", "recommended>Yes<", "asks for: drain_and_reset"),
        ("a5000", "<gpu_recovery_action>None<", "<gpu_recovery_action>Reboot<", "asks for: reboot"),
        ("a5000", "<gpu_recovery_action>None<", "<gpu_recovery_action>Exchange<", "asks for: other"),
        ("a5000", "<remapped_row_failure>No<", "<remapped_row_failure>Yes<", "could not be remapped"),
        ("a5000", "<remapped_row_pending>No<", "<remapped_row_pending>Yes<", "at its next reset"),
        ("t4", "<gpu_temp>40 C<", "<gpu_temp>GPU is lost<", "fallen off the bus"),
    ],
)
def test_a_record_of_a_sick_gpu(name: str, old: str, new: str, problem: str) -> None:
    text, _ = record(name)
    assert old in text
    facts = smi.read(text.replace(old, new)).facts()
    assert not facts["healthy"]
    assert [problem in said for said in facts["gpus"][0]["problems"]] == [True]


@pytest.mark.parametrize(("text", "words"), [("no devices", "is not XML"), ("<html/>", "an element html")])
def test_what_is_no_record_is_refused(text: str, words: str) -> None:
    with pytest.raises(TrainyardError, match=words):
        smi.read(text)
