"""Every combination of the measured table, and the version limits."""

import pytest

from lib.compat import Combination, check
from lib.errors import InputError

WORKS = [
    ("parameter_server", "custom", "none"),
    ("parameter_server", "custom", "tf_keras"),
    ("parameter_server", "fit", "tf_keras"),
    ("multi_worker_mirrored", "custom", "none"),
    ("multi_worker_mirrored", "custom", "tf_keras"),
    ("multi_worker_mirrored", "custom", "keras3"),
    ("multi_worker_mirrored", "fit", "tf_keras"),
]
REFUSED = [
    ("parameter_server", "custom", "keras3", "loses steps"),
    ("parameter_server", "fit", "keras3", "fails at its start"),
    ("parameter_server", "fit", "none", "part of Keras"),
    ("multi_worker_mirrored", "fit", "keras3", "PerReplica"),
    ("multi_worker_mirrored", "fit", "none", "part of Keras"),
]
OURS = ("parameter_server", "custom", "none")


@pytest.mark.parametrize("combination", WORKS)
def test_a_working_combination_passes(combination):
    check(Combination(*combination, tensorflow="2.21.0", python="3.13.5"))


@pytest.mark.parametrize(("strategy", "loop", "keras", "reason"), REFUSED)
def test_an_impossible_combination_names_the_nearest(strategy, loop, keras, reason):
    with pytest.raises(InputError, match=reason) as error:
        check(Combination(strategy, loop, keras))
    assert "nearest that works" in error.value.remedy


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({"tensorflow": "2.21.0", "python": "3.14.0"}, "no wheel for python 3.14.0"),
        ({"tensorflow": "2.21.0", "python": "3.9.2"}, "no wheel for python 3.9.2"),
        ({"tensorflow": "2.19.0", "python": "3.13.0"}, "no wheel for python 3.13.0"),
        ({"tensorflow": "1.15.0"}, "not a version that was tried"),
        ({"tensorflow": "new"}, "not dotted numbers"),
        ({"cuda": "11.8"}, "cuda 11.8"),
        ({"driver": "470.256.02"}, "driver 470.256.02 is too old"),
    ],
)
def test_an_impossible_version_is_refused(versions, words):
    with pytest.raises(InputError, match=words):
        check(Combination(*OURS, **versions))


def test_tf_keras_belongs_to_one_tensorflow():
    with pytest.raises(InputError, match=r"tf_keras 2\.20\.0"):
        check(Combination("parameter_server", "fit", "tf_keras", tensorflow="2.21.0", tf_keras="2.20.0"))


def test_an_unknown_word_is_refused():
    with pytest.raises(InputError, match="strategy 'mirrored' is unknown"):
        check(Combination("mirrored", "custom", "none"))
