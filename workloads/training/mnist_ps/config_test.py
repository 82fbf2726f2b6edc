"""Knobs: defaults, refusals, flags."""

import dataclasses
from pathlib import Path

import pytest

from lib.errors import InputError
from training.mnist_ps.config import Config
from training.mnist_ps.main import parse_flags


def test_the_defaults_are_those_of_the_field():
    config = Config()
    assert (config.train_steps, config.batch_size, config.learning_rate) == (200, 20, 0.001)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("train_steps", -1),
        ("batch_size", 0),
        ("batch_size", 60001),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("hidden_units", 0),
        ("checkpoint_every", -1),
        ("report_every", 0),
        ("stall_timeout", 0.0),
        ("start_timeout", float("inf")),
        ("accuracy_bound", 1.5),
        ("steps_per_dispatch", 0),
        ("seed", -1),
    ],
)
def test_an_impossible_value_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"^{name} is "):
        Config(**{name: value})


def test_every_field_has_a_flag_of_its_type():
    flags = parse_flags(["--train_steps", "0", "--learning_rate", "0.01", "--log_dir", "/tmp/logs"])
    assert set(flags) == {field.name for field in dataclasses.fields(Config)}
    config = Config(**flags)
    assert (config.train_steps, config.learning_rate, config.log_dir) == (0, 0.01, Path("/tmp/logs"))


@pytest.mark.parametrize("arguments", [["--steps", "1"], ["--train_steps", "many"], ["--batch_size", "2.5"]])
def test_a_wrong_flag_leaves_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        parse_flags(arguments)
    assert end.value.code == 2
    assert arguments[0].lstrip("-") in capsys.readouterr().err
