"""Tests of manifests: their recordings, and all their faults at once."""

from __future__ import annotations

import pytest

from engine.errors import InputError
from speech import manifests
from tests.trainings import speech_samples


def test_files_lie_beside_their_manifest_and_lists_are_put_together(tmp_path):
    one = speech_samples.write(tmp_path / "one", ["ab", "ba"], "train.csv")
    other = speech_samples.write(tmp_path / "two", ["aab"], "more.csv")
    both, alone = manifests.read([[one, other], [other]])
    assert [each.transcript for each in both] == ["ab", "ba", "aab"]
    assert both[2:] == alone
    assert alone[0].path == tmp_path / "two/more-0.wav"
    assert alone[0].sound.samples == 3 * speech_samples.LETTER_SAMPLES


def test_everything_that_is_wrong_is_named_at_once(tmp_path):
    manifest = speech_samples.write(tmp_path, ["ab", "ba", "a", "b", "aa"], "train.csv")
    (tmp_path / "train-0.wav").unlink()
    (tmp_path / "train-1.wav").write_bytes(b"ID3 this is an mp3 file")
    lines = manifest.read_text(encoding="utf-8").splitlines()
    lines[3] = lines[3].rpartition(",")[0] + ",A4"
    lines[4] = lines[4].rpartition(",")[0] + ","
    lines[5] = "train-4.wav,17,aa"
    manifest.write_text("\n".join(lines) + "\n", encoding="utf-8")
    bare = tmp_path / "bare.csv"
    bare.write_text("wav_filename,text\n", encoding="utf-8")
    empty = tmp_path / "two/train.csv"
    empty.parent.mkdir()
    empty.write_text(",".join(manifests.COLUMNS) + "\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        manifests.read([[manifest], [bare, empty], [tmp_path / "none.csv"]])
    message = error.value.message
    for fault in (
        "train.csv line 2: train-0.wav cannot be read (No such file or directory)",
        "train.csv line 3: train-1.wav is not a WAV file",
        "train.csv line 4: the transcript has 'A4', and letters are",
        "train.csv line 5: there is no transcript",
        "train.csv line 6: train-4.wav has 7724 bytes, not 17",
        "bare.csv has no column transcript, wav_filesize",
        "two/train.csv names no recording",
        "none.csv cannot be read (No such file or directory)",
    ):
        assert fault in message
    assert message.startswith("The data has 8 faults: ")


def test_of_very_many_faults_the_number_is_said(tmp_path):
    manifest = speech_samples.write(tmp_path, ["a"] * (manifests.SHOWN + 3), "train.csv")
    for file in tmp_path.glob("*.wav"):
        file.unlink()
    with pytest.raises(InputError) as error:
        manifests.read([[manifest]])
    assert error.value.message.startswith("The data has 53 faults: ")
    assert error.value.message.endswith("; and 3 more.")
    assert error.value.message.count("cannot be read") == manifests.SHOWN


def test_a_file_of_bytes_is_no_manifest(tmp_path):
    manifest = tmp_path / "train.csv"
    manifest.write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(InputError, match=r"train\.csv cannot be read \("):
        manifests.read([[manifest]])
