"""All variables of a model, including untrained ones: the statistics of a normalisation are learned, too."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from engine.pieces import Sharded
from engine.workload import Model
from lib.errors import InputError


def variables(model: Model) -> list[tf.Variable]:
    """Return every variable that a checkpoint of the model holds, once, in an order common to all models of one class.

    TensorFlow finds them as for a checkpoint, so those of a Keras layer are included. A variable that is split over
    parameter servers counts as one.
    """
    found: dict[int, tf.Variable] = {}
    for node in tf.train.TrackableView(model).descendants():
        variable = _plain(node)
        if isinstance(variable, tf.Variable | Sharded):
            found.setdefault(id(variable), variable)
    return list(found.values())


def require_tracked(model: Model) -> None:
    """Check that the model's checkpoints hold all variables that it trains.

    :raises InputError: it hides a parameter, for example in an object that is not a `tf.Module`.
    """
    known = {id(each) for each in variables(model)}
    for parameter in model.parameters():
        if id(_plain(parameter)) not in known:
            raise InputError(
                f"The model trains {_name(parameter)}, which its checkpoints would not hold.",
                "Make it an attribute of the model, or of a tf.Module in the model.",
            )


def copy(whole: Model, trained: Model) -> None:
    """Copy the values of the trained model to a model in this process's memory.

    :param whole: model of the same class.
    :raises InputError: they have different variables, for example because one is only created when the model is called.
    """
    mine, theirs = variables(whole), variables(trained)
    shapes = [[(each.shape.as_list(), each.dtype) for each in found] for found in (mine, theirs)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"The model had {len(mine)} variables after its constructor, and has {len(theirs)} after training.",
            "Create all of them in its constructor; a Keras layer creates its variables in build().",
        )
    for variable, value in zip(mine, theirs, strict=True):
        variable.assign(value)


def not_finite(model: Model) -> str:
    """Return the name of a variable with a number that is not finite; empty if there is none."""
    numbers = (each for each in variables(model) if each.dtype.is_floating)
    return next((_name(each) for each in numbers if not tf.reduce_all(tf.math.is_finite(each))), "")


def _plain(node: Any) -> Any:
    """Return TensorFlow's variable, which Keras 3 wraps in its own type."""
    return node if isinstance(node, tf.Variable | Sharded) else getattr(node, "value", None)


def _name(variable: tf.Variable) -> str:
    return str(variable.name).split(":")[0]
