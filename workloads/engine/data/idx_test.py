"""Tests of idx files."""

from __future__ import annotations

import pytest

from engine.errors import InputError
from tests.trainings import processes

pytest.importorskip("tensorflow")
idx = pytest.importorskip("engine.data.idx")


def opened(data_dir, part="train"):
    folder = idx.folder(data_dir, "train-images-idx3-ubyte")
    return idx.Labelled.open(folder, f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte", 784)


@pytest.mark.parametrize("subfolder", ["", "data"])
def test_files_are_found_in_both_places(tmp_path, subfolder):
    processes.write(tmp_path / subfolder)
    assert (opened(tmp_path).count, opened(tmp_path, "t10k").count) == (64, 16)
    for images, labels in (opened(tmp_path).arrays(), [each.numpy() for each in opened(tmp_path).tensors()]):
        assert images.shape == (64, 784) and images[3].nonzero()[0].tolist() == list(range(84, 112))
        assert labels.tolist() == [i % 10 for i in range(64)]


def damage(folder, what):
    path = folder / "train-images-idx3-ubyte"
    content = path.read_bytes()
    if what == "missing":
        path.unlink()
    elif what == "labels missing":
        (folder / "train-labels-idx1-ubyte").unlink()
    elif what == "compressed":
        path.write_bytes(b"\x1f\x8b" + content)
    elif what == "cut off":
        path.write_bytes(content[:-1])
    elif what == "empty":
        path.write_bytes(b"")
    else:
        processes.write(folder / "other", train=32)
        (folder / "train-labels-idx1-ubyte").write_bytes((folder / "other/train-labels-idx1-ubyte").read_bytes())


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("missing", "holds no train-images"),
        ("labels missing", "train-labels-idx1-ubyte cannot be read"),
        ("compressed", "not an idx file"),
        ("cut off", "should hold 64 items"),
        ("empty", "not an idx file"),
        ("mixed", "64 images and .* 32 labels"),
    ],
)
def test_damaged_files_are_refused(tmp_path, what, words):
    damage(processes.write(tmp_path), what)
    with pytest.raises(InputError, match=words):
        opened(tmp_path)
