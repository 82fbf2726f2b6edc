"""Tests of flags: defaults, invalid values, the command line, the README."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.config import Config, flag, other_default, parse_flags
from engine.errors import InputError


@dataclass(frozen=True)
class Wide(Config):
    """A workload.

    Not in the help.
    """

    train_steps: int = other_default("train_steps", 600)
    width: int = flag(100, "width of the layer", lambda n: n >= 1, "1 or more")


def test_the_defaults_are_those_of_the_field():
    config = Config()
    assert (config.train_steps, config.batch_size, config.learning_rate) == (200, 20, 0.001)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("train_steps", -1),
        ("batch_size", 0),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("learning_rate_decay", "linear"),
        ("attempt", "../other"),
        ("resume", "never"),
        ("checkpoint_every", -1),
        ("report_every", 0),
        ("stall_timeout", 0.0),
        ("start_timeout", float("inf")),
        ("accuracy_bound", 1.5),
        ("patience", -1),
        ("steps_per_dispatch", 0),
        ("benchmark_steps", -1),
        ("seed", -1),
        ("require_gpu", "maybe"),
        ("width", 0),
    ],
)
def test_an_impossible_value_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=rf"^{name} is .*\. Set it to [^.]+"):
        Wide(**{name: value})


def test_a_rate_that_falls_needs_an_end():
    assert (Config().decay_steps, Config(train_steps=60, learning_rate_decay="cosine").decay_steps) == (0, 60)
    with pytest.raises(InputError, match=r"learning_rate_decay is cosine, and train_steps is 0.*decay to none"):
        Config(train_steps=0, learning_rate_decay="cosine")


def test_patience_needs_evaluations_to_count():
    assert Config(patience=3, checkpoint_every=1).patience == 3
    with pytest.raises(
        InputError, match=r"patience is 3, and checkpoint_every is 0.*Set checkpoint_every to 1 or more"
    ):
        Config(patience=3, checkpoint_every=0)


def test_every_field_has_a_flag_of_its_type():
    flags = parse_flags(Wide, "wide", ["--report_every", "5", "--learning_rate", "0.01", "--log_dir", "/tmp/logs"])
    assert set(flags) == {field.name for field in dataclasses.fields(Wide)}
    config = Wide(**flags)
    assert (config.report_every, config.learning_rate, config.log_dir) == (5, 0.01, Path("/tmp/logs"))
    assert (config.train_steps, config.width) == (600, 100)


@pytest.mark.parametrize("arguments", [["--steps", "1"], ["--train_steps", "many"], ["--batch_size", "2.5"]])
def test_a_wrong_flag_leaves_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        parse_flags(Wide, "wide", arguments)
    assert end.value.code == 2
    assert arguments[0].lstrip("-") in capsys.readouterr().err


@dataclass(frozen=True)
class Renamed(Config):
    """A workload with a second name for a flag."""

    batch_size: int = other_default("batch_size", 32, also="train_batch_size")


@pytest.mark.parametrize("name", ["--batch_size", "--train_batch_size"])
def test_a_flag_may_have_a_second_name(name):
    assert parse_flags(Renamed, "renamed", [name, "8"])["batch_size"] == 8
    assert parse_flags(Renamed, "renamed", [])["batch_size"] == 32


def test_the_help_says_what_a_flag_means(capsys):
    with pytest.raises(SystemExit):
        parse_flags(Wide, "wide", ["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "A workload. options:" in text
    for each in dataclasses.fields(Wide):
        assert f"{each.metadata['meaning']} (default: {each.default})" in text


def test_the_readme_has_every_flag():
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    for each in dataclasses.fields(Config):
        default = f"{each.default:g}" if isinstance(each.default, float) else each.default
        assert f"| `{each.name}` | `{default}` | {each.metadata['meaning']} |\n" in readme
