"""Tests of every combination in the measured table, of versions, and of the nearest working combinations."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import product

import pytest

from engine.compat import KERAS, LOOPS, STRATEGIES, TABLE, Combination, check, nearest, reason
from engine.errors import InputError

REFUSED = [
    ("parameter_server", "custom", "keras3", "loses steps"),
    ("parameter_server", "fit", "keras3", "fails at its start"),
    ("parameter_server", "fit", "none", "part of Keras"),
    ("multi_worker_mirrored", "fit", "keras3", "PerReplica"),
    ("multi_worker_mirrored", "fit", "none", "part of Keras"),
    ("single", "fit", "none", "part of Keras"),
]
WORKS = [words for words in product(STRATEGIES, LOOPS, KERAS) if words not in [row[:3] for row in REFUSED]]
OURS = Combination("parameter_server", "custom", "none")
WHOLE = Combination(
    "parameter_server",
    "custom",
    "none",
    "2.21.0",
    "3.13.5",
    cuda="12.8",
    driver="580.95.05",
    cudnn="9.10",
    nccl="2.28.3",
)
"""Everything that an image and a node report, in a working combination."""


@pytest.mark.parametrize("combination", WORKS)
def test_a_working_combination_passes(combination):
    check(Combination(*combination, tensorflow="2.21.0", python="3.13.5"))


@pytest.mark.parametrize(("strategy", "loop", "keras", "words"), REFUSED)
def test_an_impossible_combination_names_the_nearest(strategy, loop, keras, words):
    with pytest.raises(InputError, match=words) as error:
        check(Combination(strategy, loop, keras))
    assert "Use the nearest match" in error.value.remedy


@pytest.mark.parametrize(
    ("versions", "words", "changes"),
    [
        ({"tensorflow": "2.21.0", "python": "3.14.0"}, "no wheel for python 3.14.0", {"python": "3.13"}),
        ({"tensorflow": "2.21.0", "python": "3.9.2"}, "no wheel for python 3.9.2", {"python": "3.10"}),
        ({"tensorflow": "2.19.0", "python": "3.13.0"}, "no wheel for python 3.13.0", {"python": "3.12"}),
        ({"tensorflow": "1.15.0"}, "not in the table of tested versions", {"tensorflow": "2.16"}),
        ({"cuda": "11.8"}, "do not run on cuda 11.8", {"cuda": "12.5"}),
        ({"cuda": "13.0"}, "do not run on cuda 13.0", {"cuda": "12.3"}),
        ({"tensorflow": "2.21.0", "cuda": "12.2"}, "2.21.0 do not run on cuda 12.2", {"cuda": "12.3"}),
        ({"tensorflow": "2.18.0", "cudnn": "8.9.7"}, "do not run on cudnn 8.9.7", {"cudnn": "9.3.0.75"}),
        ({"tensorflow": "2.16.1", "cudnn": "9.3"}, "do not run on cudnn 9.3", {"cudnn": "8.9.7.29"}),
        ({"tensorflow": "2.21.0", "nccl": "2.19.3"}, "do not run on nccl 2.19.3", {"nccl": "2.27.7"}),
        ({"driver": "470.256.02"}, "driver 470.256.02 is too old for CUDA 12", {"driver": "525.60.13"}),
        ({"compute_capability": "5.2", "tensorflow": "2.17.0"}, "no kernels for a GPU of 5.2", {"tensorflow": "2.16"}),
        (
            {"compute_capability": "12.0", "cuda": "12.5.82"},
            "CUDA 12.5.82 has no code for a GPU of 12.0",
            {"cuda": "12.8"},
        ),
        ({"compute_capability": "10.3", "cuda": "12.3"}, "no code for a GPU of 10.3", {"cuda": "12.8"}),
        ({"compute_capability": "7.0", "driver": "590.44.01"}, "does not drive a GPU of 7.0", {"driver": "580.65.06"}),
    ],
)
def test_an_impossible_version_is_refused(versions, words, changes):
    asked = replace(OURS, **versions)
    with pytest.raises(InputError, match=words) as error:
        check(asked)
    if "12.2" not in versions.values():
        assert nearest(asked) == changes
        assert all(f"{name} {value}" in error.value.remedy for name, value in changes.items())


def test_a_cuda_that_is_too_old_by_its_second_number():
    assert nearest(replace(OURS, tensorflow="2.21.0", cuda="12.2")) == {"cuda": "12.5"}
    check(replace(OURS, tensorflow="2.16.1", cuda="12.3"))


def test_what_is_no_version_has_no_neighbour():
    with pytest.raises(InputError, match="not dotted numbers"):
        check(replace(OURS, tensorflow="new"))


def test_tf_keras_belongs_to_one_tensorflow():
    asked = Combination("parameter_server", "fit", "tf_keras", tensorflow="2.21.0", tf_keras="2.20.0")
    with pytest.raises(InputError, match=r"tf_keras 2\.20\.0"):
        check(asked)
    assert nearest(asked) == {"tf_keras": "2.21.0"}


def test_keras_3_has_an_oldest_version():
    asked = Combination("single", "fit", "keras3", tensorflow="2.21.0", keras_version="3.5.0")
    assert nearest(asked) == {"keras_version": "3.12.0"}


def test_an_unknown_word_is_refused():
    with pytest.raises(InputError, match="strategy 'mirrored' is unknown"):
        check(Combination("mirrored", "custom", "none"))


def test_what_works_has_no_nearest():
    check(WHOLE)
    assert nearest(WHOLE) == {}


@pytest.mark.parametrize(
    ("spoiled", "fewest"),
    [
        ({"python": "3.14", "cudnn": "8.9"}, 2),
        ({"python": "3.14", "cudnn": "8.9", "driver": "470.1"}, 3),
        ({"tensorflow": "2.30", "driver": "470.1"}, 2),
        ({"loop": "fit", "keras": "none", "cuda": "11.0"}, 2),
    ],
)
def test_as_few_columns_as_possible_are_changed(spoiled, fewest):
    """Check by brute force that no combination with one change fewer works."""
    asked = replace(WHOLE, **spoiled)
    changes = nearest(asked)
    assert len(changes) == fewest
    assert reason(replace(asked, **changes)) is None
    one_less = [replace(asked, **{name: value}) for name, value in asdict(replace(asked, **changes)).items()]
    assert all(reason(each) for each in one_less)


@pytest.mark.parametrize(("cuda", "gpu"), [("12.5", "9.0"), ("12.8.1", "12.0"), ("12.9", "10.3"), ("", "12.0")])
def test_a_gpu_that_its_cuda_knows_is_taken(cuda, gpu):
    check(replace(OURS, cuda=cuda, compute_capability=gpu))


def test_the_gpu_itself_is_never_changed():
    assert nearest(replace(OURS, tensorflow="2.21.0", compute_capability="3.5")) == {}
    with pytest.raises(InputError, match=r"no kernels for a GPU of 3\.5") as error:
        check(replace(OURS, tensorflow="2.21.0", compute_capability="3.5"))
    assert "No similar combination works" in error.value.remedy


def test_every_typed_column_names_its_source_and_every_release_has_all_columns():
    table = json.loads(TABLE.read_text())
    assert all(column["source"] and column["what"] and column["values"] for column in table["typed"].values())
    wanted = {"wheel", "python", "keras", "tf_keras", "cuda", "cudnn", "nccl"}
    assert {frozenset(row) for row in table["tensorflow"].values()} == {frozenset(wanted)}
    assert table["typed"]["compute_capability"]["values"].keys() == table["tensorflow"].keys()


def test_the_project_installs_what_the_table_has():
    requirements = (TABLE.parent / "images/tensorflow/requirements.txt").read_text()
    (version,) = [
        line.split("==")[1].split()[0] for line in requirements.splitlines() if line.startswith("tensorflow-cpu==")
    ]
    check(replace(OURS, tensorflow=version, python="3.13"))
