"""Tests of invalid data, and of a whole run as processes, on tones instead of letters."""

import pytest

from engine.errors import InputError
from tests.trainings import speech_samples
from tests.trainings.processes import START_SECONDS, Processes
from training.speech.config import Config
from training.speech_ps.main import workload

pytest.importorskip("tensorflow")


def test_everything_wrong_with_the_data_is_named_before_training(tmp_path):
    manifest = speech_samples.write(tmp_path, ["ab"], "train.csv")
    speech_samples.write_wav(tmp_path / "short.wav", [0] * 1000)
    with manifest.open("a", encoding="utf-8") as stream:
        stream.write(f"short.wav,{(tmp_path / 'short.wav').stat().st_size},abc\n")
    (tmp_path / "dev.csv").write_text("wav_filename,wav_filesize,transcript\nnone.wav,1,a\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        workload(Config(data_dir=tmp_path))
    assert error.value.message.startswith("The data has 3 faults: ")
    assert "train.csv line 3: short.wav is too short for its transcript: 2 steps" in error.value.message
    assert "none.wav cannot be read" in error.value.message and "test.csv cannot be read" in error.value.message


@pytest.mark.slow
def test_a_run_on_parameter_servers(tmp_path):
    for name, sentences in (("train", ["abc", "cab", "ba c", "b"] * 8), ("dev", ["ac"]), ("test", ["bca", "cb"])):
        speech_samples.write(tmp_path / "data", sentences, f"{name}.csv")
    processes = Processes(tmp_path, "speech_ps", workers=1, data=tmp_path / "data", preloaded=True)
    try:
        flags = ("--units", "32", "--train_steps", "60", "--benchmark_steps", "30")
        assert processes.start_all(*flags).wait(START_SECONDS) == 0
    finally:
        processes.kill()
    (benchmark,), (*_, judged) = processes.events("benchmark"), processes.events("evaluate")
    assert 30 <= benchmark["steps"] < 40 and judged["step"] == 60
    assert judged["accuracy"] == pytest.approx(1 - judged["character_error_rate"], abs=1e-5)
