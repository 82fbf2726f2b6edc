"""A whole run as processes, on tones in the place of letters."""

import pytest

from engine.processes import START_SECONDS, Processes
from lib import speech_samples

pytest.importorskip("tensorflow")


@pytest.mark.slow
def test_a_run_on_parameter_servers(tmp_path):
    for name, sentences in (("train", ["abc", "cab", "ba c", "b"] * 8), ("dev", ["ac"]), ("test", ["bca", "cb"])):
        speech_samples.write(tmp_path / "data", sentences, f"{name}.csv")
    processes = Processes(tmp_path, "speech_ps", workers=1, data=tmp_path / "data")
    try:
        flags = ("--units", "32", "--train_steps", "60", "--benchmark_steps", "30")
        assert processes.start_all(*flags).wait(START_SECONDS) == 0
    finally:
        processes.kill()
    (benchmark,), (*_, judged) = processes.events("benchmark"), processes.events("evaluate")
    assert 30 <= benchmark["steps"] < 40 and judged["step"] == 60
    assert judged["accuracy"] == pytest.approx(1 - judged["character_error_rate"], abs=1e-5)
