"""All variables of a model, trained or not: the statistics of a normalisation belong to what was learned, too."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from engine.pieces import Sharded
from engine.workload import Model
from lib.errors import InputError


def variables(model: Model) -> list[tf.Variable]:
    """Every variable that a checkpoint of the model holds, once, in an order that all models of one making share.

    TensorFlow finds them as a checkpoint does, so that those of a Keras layer are among them. One that lies in pieces
    on parameter servers is one.
    """
    found: dict[int, tf.Variable] = {}
    for node in tf.train.TrackableView(model).descendants():
        variable = _plain(node)
        if isinstance(variable, tf.Variable | Sharded):
            found.setdefault(id(variable), variable)
    return list(found.values())


def require_tracked(model: Model) -> None:
    """Refuse a model that trains what its checkpoints would not hold.

    :raises InputError: it hides a parameter, in an object that is no `tf.Module` for example.
    """
    known = {id(each) for each in variables(model)}
    for parameter in model.parameters():
        if id(_plain(parameter)) not in known:
            raise InputError(
                f"The model trains {_name(parameter)}, which no checkpoint of it would hold.",
                "Make it an attribute of the model, or of a tf.Module that is one.",
            )


def copy(whole: Model, trained: Model) -> None:
    """Give a model in this process's memory the values of the one that is trained.

    :param whole: of the same making.
    :raises InputError: they have other variables, as where one is made only when the model is called.
    """
    mine, theirs = variables(whole), variables(trained)
    shapes = [[(each.shape.as_list(), each.dtype) for each in found] for found in (mine, theirs)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"The model had {len(mine)} variables when it was made, and has {len(theirs)} now that it was trained.",
            "Make all of them in its constructor; a layer of Keras makes its variables in build().",
        )
    for variable, value in zip(mine, theirs, strict=True):
        variable.assign(value)


def not_finite(model: Model) -> str:
    """Name of a variable that holds a number that is not finite; empty where there is none."""
    numbers = (each for each in variables(model) if each.dtype.is_floating)
    return next((_name(each) for each in numbers if not tf.reduce_all(tf.math.is_finite(each))), "")


def _plain(node: Any) -> Any:
    """TensorFlow's variable, which Keras 3 wraps in one of its own."""
    return node if isinstance(node, tf.Variable | Sharded) else getattr(node, "value", None)


def _name(variable: tf.Variable) -> str:
    return str(variable.name).split(":")[0]
