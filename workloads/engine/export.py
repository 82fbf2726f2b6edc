"""Export the trained model as a SavedModel, which can be used without this code."""

from __future__ import annotations

import shutil
from pathlib import Path

import tensorflow as tf

from engine.workload import Model
from lib import whole_file
from lib.errors import unwritable
from lib.metrics import os_error


def export(model: Model, folder: Path, io_device: str) -> None:
    """Write the model, with `serve` as the signature `serving_default`, and replace an earlier export.

    It is on the disk when this returns.

    :param model: model in this process's memory.
    :param folder: folder of the SavedModel.
    :param io_device: TensorFlow's name of this process's device.
    :raises VolumeError: the folder cannot be written.
    """
    part = folder.with_suffix(".part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        options = tf.saved_model.SaveOptions(experimental_io_device=io_device)
        tf.saved_model.save(model, str(part), signatures=model.serve, options=options)
        whole_file.sync_tree(part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
        whole_file.sync(folder.parent)
    except OSError as error:
        raise unwritable(folder, error) from error
    except (tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError) as error:
        raise unwritable(folder, os_error(error)) from error
