"""A Secret whose values are files: they are read where the module runs, so that no task carries them."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from ..core.errors import TrainyardError
from .api import Object


def secret_of_files(
    *, name: str, namespace: str, type: str, files: Mapping[str, str], labels: Mapping[str, str]
) -> Object:
    """The Secret with the contents of files.

    :param type: such as `kubernetes.io/tls`.
    :param files: key of the Secret -> path.
    :raises TrainyardError: a file cannot be read; the message names it and nothing of its content.
    """
    data = {}
    for key, path in files.items():
        try:
            with open(path, "rb") as stream:
                data[key] = base64.b64encode(stream.read()).decode()
        except OSError as error:
            why = f"{path}, for the Secret {namespace}/{name}, cannot be read: {error.strerror}."
            raise TrainyardError(why) from error
    meta = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": type, "data": data}
