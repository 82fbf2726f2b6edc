"""What a program writes in a root file system, and the program that makes the recordings."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.bundle.test_builders import PROJECT, artefact, context, needs
from trainyard.bundle.build import disk
from trainyard.core.errors import TrainyardError

__all__ = ["context"]

SOURCE = """
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
  char host[9] = {0};
  FILE *input = fopen("/etc/hostname", "r"), *made;
  if (count != 2 || !access("/dev/null", F_OK) || !input || !fread(host, 1, 8, input)) return 1;
  if (!host[4]) return 0;
  if (mkdir(words[1], 0755) || chdir(words[1]) || mkdir("deep", 0755) || !(made = fopen("deep/file", "w"))) return 2;
  return fputs(host, made) < 0 || fclose(made);
}
"""
RECIPE = {"rootfs": "artefact:program/rootfs.tar", "program": "artefact:program/write"}


@pytest.fixture
def root(tmp_path: Path, context: object) -> Path:
    """A root file system with a name and a device, and a program that needs nothing of it."""
    made = tmp_path / "made"
    (made / "write.c").write_text(SOURCE, encoding="ascii")
    subprocess.run(["gcc", "-static", "-o", made / "write", made / "write.c"], check=True, timeout=60)
    folder = tmp_path / "root"
    for name in ("etc/hostname", "dev/null"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("bookworm", encoding="ascii")
    return folder


def pack(folder: Path, made: Path) -> None:
    with tarfile.open(made / "rootfs.tar", "w") as archive:
        archive.add(folder, ".")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs("gcc", "chroot", "tar")
def test_what_the_program_writes_is_kept(root, context, tmp_path) -> None:
    pack(root, tmp_path / "made")
    assert disk.output(artefact("program_output", RECIPE), tmp_path / "out", context) == {"count": 1}
    assert (tmp_path / "out/deep/file").read_text() == "bookworm"
    assert not (tmp_path / "cache/work/root-tool").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs("gcc", "chroot", "tar")
def test_a_program_that_writes_nothing_is_refused(root, context, tmp_path) -> None:
    (root / "etc/hostname").write_text("sid", encoding="ascii")
    pack(root, tmp_path / "made")
    with pytest.raises(TrainyardError, match="The program of tool wrote no files"):
        disk.output(artefact("program_output", RECIPE), tmp_path / "out", context)


@pytest.fixture
def speech() -> ModuleType:
    spec = importlib.util.spec_from_file_location("speech", PROJECT / "roles/bundle/files/speech/speech.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_voice_is_heard_in_the_held_out_set_alone(speech: ModuleType) -> None:
    voices = {name: {voice for voice, _ in recordings} for name, recordings in speech.plan().items()}
    assert voices["train"] == voices["dev"] == speech.VOICES.keys() - {speech.HELD_OUT}
    assert voices["test"] == {speech.HELD_OUT} and len(speech.VOICES) == 4


def test_no_sentence_is_in_two_sets(speech: ModuleType) -> None:
    sentences = [sentence for recordings in speech.plan().values() for _, sentence in recordings]
    assert len(sentences) == len(set(sentences)) >= 300
    assert set("".join(sentences)) == set("abcdefghijklmnopqrstuvwxyz ")
    assert speech.plan() == speech.plan()


def test_a_recording_says_its_sentence_by_both_programs(speech: ModuleType, tmp_path: Path, monkeypatch) -> None:
    """As stand-ins; with the real ones the recipe is made."""
    for name, script in {"espeak-ng": 'printf "%s|" "$@"', "sox": 'for last; do :; done; cat > "$last"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(speech, "plan", lambda: {"train": [("anna", "one red box")], "test": [("dora", "two keys")]})
    speech.write(tmp_path / "made")
    said = (tmp_path / "made/wav/train-000-anna.wav").read_text()
    assert said.endswith("|one red box|") and speech.VOICES["anna"][0] in said
    size = (tmp_path / "made/wav/test-000-dora.wav").stat().st_size
    manifest = (tmp_path / "made/test.csv").read_text()
    assert manifest == f"wav_filename,wav_filesize,transcript\nwav/test-000-dora.wav,{size},two keys\n"
