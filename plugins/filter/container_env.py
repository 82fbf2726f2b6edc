"""Filter: environment variables for a container of a parsed manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def container_env(
    documents: Iterable[Mapping[str, Any] | None], name: str, env: Mapping[str, str], source: str
) -> list[Mapping[str, Any]]:
    """The documents of a manifest, with these variables set in the container `name` of the DaemonSet `name`.

    :param documents: parsed YAML documents; empty ones are left out.
    :param env: values by name; a variable that is there is replaced in its place, another comes last.
    :param source: the variable that names the manifest, for the error.
    :raises AnsibleFilterError: the manifest has no such container.
    """
    result: list[Mapping[str, Any]] = []
    found = False
    for document in filter(None, documents):
        if document.get("kind") == "DaemonSet" and document["metadata"]["name"] == name:
            pod = document["spec"]["template"]["spec"]
            found = any(container["name"] == name for container in pod["containers"])
            containers = [_with_env(item, env) if item["name"] == name else item for item in pod["containers"]]
            template = {**document["spec"]["template"], "spec": {**pod, "containers": containers}}
            result.append({**document, "spec": {**document["spec"], "template": template}})
        else:
            result.append(document)
    if not found:
        raise AnsibleFilterError(
            f"{source} has no DaemonSet {name} with a container of that name; is it the manifest of a Calico release?"
        )
    return result


def _with_env(container: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    there = [
        {"name": item["name"], "value": env[item["name"]]} if item["name"] in env else item
        for item in container.get("env", [])
    ]
    names = {item["name"] for item in there}
    return {**container, "env": there + [{"name": key, "value": env[key]} for key in env if key not in names]}


class FilterModule:
    def filters(self) -> dict[str, Callable[..., object]]:
        return {"container_env": container_env}
