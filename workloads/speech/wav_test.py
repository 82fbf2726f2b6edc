"""Tests of WAV files: the position of the sound, and files without sound."""

from __future__ import annotations

import struct
import wave

import pytest

from speech import signals
from tests.trainings import speech_samples


def test_the_sound_begins_after_the_header(tmp_path):
    path = tmp_path / "a.wav"
    speech_samples.write_wav(path, [0, 1000, -1000])
    assert signals.sound(path) == signals.Sound(begin=44, samples=3)


def test_other_chunks_are_passed_over(tmp_path):
    path = tmp_path / "a.wav"
    speech_samples.write_wav(path, [7, 8])
    content = path.read_bytes()
    more = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    path.write_bytes(content[:36] + more + content[36:])
    found = signals.sound(path)
    assert found == signals.Sound(begin=56, samples=2)
    assert struct.unpack_from("<2h", path.read_bytes(), found.begin) == (7, 8)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not a WAV file"),
        (b"wav_filename,wav_filesize,transcript\n", "is not a WAV file"),
        (b"RIFF\x04\0\0\0WAVE", "without sound"),
        (b"RIFF\x0c\0\0\0WAVEfmt \x02\0\0\0\x01\0", "damaged header"),
    ],
)
def test_what_is_no_recording_is_said(tmp_path, content, reason):
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        signals.sound(path)


@pytest.mark.parametrize(
    ("rate", "channels", "width", "reason"),
    [
        (22050, 1, 2, "has 22050 Hz, 1 channels and 16 bits, not 16000 Hz, 1 and 16"),
        (16000, 2, 2, "has 16000 Hz, 2 channels"),
        (16000, 1, 1, "and 8 bits"),
    ],
)
def test_another_rate_or_width_is_named(tmp_path, rate, channels, width, reason):
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(channels)
        stream.setsampwidth(width)
        stream.setframerate(rate)
        stream.writeframes(bytes(100))
    with pytest.raises(ValueError, match=reason):
        signals.sound(path)


def test_floating_point_is_not_pcm(tmp_path):
    path = tmp_path / "a.wav"
    speech_samples.write_wav(path, [1])
    content = bytearray(path.read_bytes())
    content[20:22] = struct.pack("<H", 3)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="encoding 3, not PCM"):
        signals.sound(path)


def test_a_file_that_is_cut_off_is_found_by_its_size(tmp_path):
    path = tmp_path / "a.wav"
    speech_samples.write_wav(path, [1, 2, 3, 4])
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="3 bytes of its sound are missing"):
        signals.sound(path)
