"""idx files and the order of the examples."""

import pytest

from lib.errors import InputError
from training.mnist_ps import idx_files

np = pytest.importorskip("numpy")
tf = pytest.importorskip("tensorflow")
data = pytest.importorskip("training.mnist_ps.data")


@pytest.mark.parametrize("subfolder", ["", "data"])
def test_files_are_found_in_both_places(tmp_path, subfolder):
    idx_files.write(tmp_path / subfolder)
    files = data.find(tmp_path)
    assert (files.train_count, files.test_count) == (64, 16)
    images, labels = data.test_set(files)
    assert images.shape == (16, 784) and labels.tolist() == [i % 10 for i in range(16)]
    train_images, train_labels = next(iter(data.training_dataset(files)))
    assert train_images.shape == (64, 784) and train_images[3].numpy().nonzero()[0].tolist() == list(range(84, 112))
    assert train_labels.numpy().tolist() == [i % 10 for i in range(64)]


def damage(folder, what):
    path = folder / "train-images-idx3-ubyte"
    content = path.read_bytes()
    if what == "missing":
        path.unlink()
    elif what == "labels missing":
        (folder / "t10k-labels-idx1-ubyte").unlink()
    elif what == "compressed":
        path.write_bytes(b"\x1f\x8b" + content)
    elif what == "cut off":
        path.write_bytes(content[:-1])
    elif what == "empty":
        path.write_bytes(b"")
    else:
        idx_files.write(folder / "other", train=32)
        (folder / "train-labels-idx1-ubyte").write_bytes((folder / "other/train-labels-idx1-ubyte").read_bytes())


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("missing", "holds no train-images"),
        ("labels missing", "t10k-labels-idx1-ubyte cannot be read"),
        ("compressed", "not an idx file"),
        ("cut off", "should hold 64 items"),
        ("empty", "not an idx file"),
        ("mixed", "64 images and .* 32 labels"),
    ],
)
def test_damaged_files_are_refused(tmp_path, what, words):
    damage(idx_files.write(tmp_path), what)
    with pytest.raises(InputError, match=words):
        data.find(tmp_path)


def epoch(number, seed=1, count=64, batch=10):
    steps = count // batch
    return np.concatenate(
        [data.example_numbers(tf.constant(number * steps + i, tf.int64), batch, count, seed) for i in range(steps)]
    )


def test_an_epoch_shows_every_example_at_most_once_in_its_own_order():
    first, second = epoch(0), epoch(1)
    for order in (first, second):
        assert len(set(order.tolist())) == 60 and order.min() >= 0 and order.max() <= 63
    assert first.tolist() != second.tolist() != epoch(1, seed=2).tolist()
    assert first.tolist() == epoch(0).tolist()
