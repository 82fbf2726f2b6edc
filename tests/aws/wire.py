"""Requests as botocore's models read them, of the two protocols: JSON with paths (EFS) and forms (EC2)."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from botocore.model import OperationModel, Shape

from tests.aws.model import Call, service

SERVICES = {"elasticfilesystem": "efs", "ec2": "ec2"}
"""Name of a service in a signature -> boto3's."""


def read(method: str, target: str, headers: dict[str, str], body: bytes) -> Call:
    """The call that a signed request makes; LookupError for one that is in no model."""
    scope = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/", headers.get("authorization", ""))
    name = SERVICES[scope[1]] if scope else "none"
    url = urlsplit(target)
    if name == "ec2":
        form = dict(parse_qsl(body.decode(), keep_blank_values=True))
        model = service("ec2").operation_model(form["Action"])
        return Call(name, model.name, _of_form(model.input_shape, form, "") or {}, headers=headers)
    for each in service(name).operation_names:
        model = service(name).operation_model(each)
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", model.http["requestUri"].rstrip("/"))
        found = re.fullmatch(pattern, url.path.rstrip("/"))
        if method == model.http["method"] and found:
            given = {key: unquote(value) for key, value in found.groupdict().items()}
            return Call(name, each, _of_rest(model, given, url.query, body), headers=headers)
    raise LookupError(f"{method} {target} is no operation of {name}")


def _of_rest(model: OperationModel, path: dict[str, str], query: str, body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body) if body else {}
    pairs = parse_qsl(query)
    for member, shape in model.input_shape.members.items():
        where, wire = shape.serialization.get("location"), shape.serialization.get("name", member)
        if where == "uri":
            found[member] = path[member]
        elif where == "querystring" and (values := [value for key, value in pairs if key == wire]):
            found[member] = values if shape.type_name == "list" else _scalar(shape, values[0])
    return found


def _of_form(shape: Shape, form: dict[str, str], prefix: str) -> Any:
    """A value of EC2's form: `Filter.1.Value.2` is a list in a list of structures."""
    if shape.type_name == "structure":
        found = {}
        for member, inner in shape.members.items():
            wire = inner.serialization.get("queryName") or _capital(inner.serialization.get("name", member))
            value = _of_form(inner, form, f"{prefix}.{wire}" if prefix else wire)
            if value is not None:
                found[member] = value
        return found or None
    if shape.type_name == "list":
        values: list[Any] = []
        while (value := _of_form(shape.member, form, f"{prefix}.{len(values) + 1}")) is not None:
            values.append(value)
        return values or None
    return _scalar(shape, form[prefix]) if prefix in form else None


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _scalar(shape: Shape, text: str) -> Any:
    if shape.type_name in ("integer", "long"):
        return int(text)
    return text == "true" if shape.type_name == "boolean" else text
