"""Tests of the columns that come from the metadata of wheels."""

import json

import pytest

from engine.compat import TABLE
from tools import compat_columns

WHEEL = {
    "version": "2.20.0",
    "classifier": [
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.9",
    ],
    "requires_dist": [
        "keras>=3.10.0",
        'nvidia-cuda-runtime-cu12<13.0,>=12.5.82; extra == "and-cuda"',
        'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
        "nvidia-nccl-cu12 ==2.23.4 ; extra == 'and-cuda'",
    ],
}


def test_the_columns_of_a_release():
    assert compat_columns.columns(WHEEL, {"version": "2.20.1"}) == {
        "wheel": "2.20.0",
        "python": ["3.9", "3.13"],
        "keras": "3.10.0",
        "tf_keras": "2.20.1",
        "cuda": "12.5",
        "cudnn": "9.3.0.75",
        "nccl": "2.23.4",
    }


def test_metadata_without_a_column_is_refused():
    without = {**WHEEL, "requires_dist": WHEEL["requires_dist"][1:]}
    with pytest.raises(ValueError, match="does not name the keras"):
        compat_columns.columns(without, {"version": "2.20.1"})


def test_the_table_is_as_the_program_writes_it():
    text = TABLE.read_text()
    document = json.loads(text)
    assert compat_columns.render(document) == text
    assert tuple(document["tensorflow"]) == compat_columns.RELEASES


@pytest.mark.slow
@pytest.mark.proof
def test_the_table_says_what_the_wheels_say():
    """Compare the newest release with the index. It takes a minute on two busy cores."""
    (newest,) = compat_columns.RELEASES[-1:]
    wheel, tf_keras = (compat_columns.metadata(f"{name}~={newest}.0") for name in ("tensorflow", "tf_keras"))
    assert compat_columns.columns(wheel, tf_keras) == json.loads(TABLE.read_text())["tensorflow"][newest]
