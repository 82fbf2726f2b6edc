"""A Secret built from files. They are read on the host that runs the module, so that no task contains their text."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from ..core.errors import TrainyardError
from .api import Object


def secret_of_files(
    *, name: str, namespace: str, type: str, files: Mapping[str, str], labels: Mapping[str, str]
) -> Object:
    """Return a Secret with the contents of files.

    :param type: type of the Secret, such as `kubernetes.io/tls`.
    :param files: key in the Secret -> path.
    :raises TrainyardError: a file cannot be read; the message contains its path but none of its content.
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
