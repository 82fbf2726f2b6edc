"""What botocore's models say of the API: values and answers checked against them.

The proxy beside this file answers in place of AWS, so everything that it lets through or makes up itself has to be what
the model knows: unknown members, values outside an enumeration and undocumented errors are faults of the test.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import botocore.session
from botocore.model import OperationModel, ServiceModel, Shape
from botocore.parsers import create_parser
from botocore.validate import ParamValidator

COMMON_ERRORS = {
    *("AccessDeniedException", "ThrottlingException", "UnrecognizedClientException", "ExpiredTokenException"),
    *("UnauthorizedOperation", "RequestLimitExceeded", "SignatureDoesNotMatch"),
}
"""Errors of all operations of a service (API reference, Common Errors), which the models do not list."""

EC2_ERRORS = {
    *("DependencyViolation", "InvalidGroup.NotFound", "InvalidGroup.Duplicate", "InvalidPermission.Duplicate"),
    *("InvalidPermission.NotFound", "InvalidSubnetID.NotFound", "InvalidSecurityGroupID.NotFound"),
}
"""EC2's model lists no errors at all; these are of its page "Error codes"."""

READS = ("Describe", "List")


@dataclass
class Call:
    """One request as the model reads it, with the outcome of its answer."""

    service: str
    operation: str
    parameters: dict[str, Any]
    status: int = 0
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def write(self) -> bool:
        return not self.operation.startswith(READS)

    @property
    def name(self) -> str:
        return f"{self.service}:{self.operation}"


@dataclass(frozen=True)
class Answer:
    """An answer as it goes over the wire."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@cache
def service(name: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(name)


def operation(call: Call) -> OperationModel:
    return service(call.service).operation_model(call.operation)


def prune(shape: Shape, value: Any) -> Any:
    """A value of moto without what the model does not have: it gives away its own fields, and null for nothing."""
    if shape.type_name == "structure" and isinstance(value, dict):
        known = {name: prune(shape.members[name], each) for name, each in value.items() if name in shape.members}
        return {name: each for name, each in known.items() if each is not None}
    if shape.type_name == "list" and isinstance(value, list):
        return [prune(shape.member, each) for each in value]
    return value


def faults(shape: Shape | None, value: Any) -> list[str]:
    """What the model refuses of a value, what botocore itself does not look at included."""
    if shape is None:
        return []
    report = ParamValidator().validate(value, shape)
    return ([report.generate_report()] if report.has_errors() else []) + list(_deeper(shape, value, shape.name))


def _deeper(shape: Shape, value: Any, where: str) -> Any:
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, each in value.items():
            if name in shape.members:
                yield from _deeper(shape.members[name], each, f"{where}.{name}")
    elif shape.type_name == "list" and isinstance(value, list):
        for each in value:
            yield from _deeper(shape.member, each, f"{where}[]")
    elif shape.type_name == "string" and isinstance(value, str):
        pattern = shape.metadata.get("pattern", "")
        if (allowed := getattr(shape, "enum", None)) and value not in allowed:
            yield f"{where} is {value}, not one of {allowed}"
        # Python's expressions have no classes of Unicode.
        if pattern and r"\p" not in pattern and not re.search(pattern, value):
            yield f"{where} is {value}, not {pattern}"
        if len(value) > shape.metadata.get("max", len(value)):
            yield f"{where} has {len(value)} characters"


def check_answer(call: Call, answer: Answer) -> list[str]:
    """What the model refuses of an answer; notes its outcome in the call."""
    model = operation(call)
    parser = create_parser(service(call.service).metadata["protocol"])
    wire = {"status_code": answer.status, "headers": answer.headers, "body": answer.body}
    parsed = parser.parse(wire, model.output_shape)
    call.status = answer.status
    if answer.status >= 300:
        call.code = parsed["Error"]["Code"]
        known = {each.name for each in model.error_shapes} | COMMON_ERRORS
        if call.service == "ec2":
            known |= EC2_ERRORS
        return [] if call.code in known else [f"{call.name} has no error {call.code}"]
    expected = model.http.get("responseCode", 200)
    parsed.pop("ResponseMetadata")
    said = faults(model.output_shape, parsed)
    return said if answer.status == expected else [*said, f"{call.name} answers {expected}, not {answer.status}"]


def failure(call: Call, code: str, message: str, **more: str) -> Answer:
    """An error as the service sends it, with the status that its model has for it."""
    if call.service == "ec2":
        root = xml.Element("Response")
        error = xml.SubElement(xml.SubElement(root, "Errors"), "Error")
        xml.SubElement(error, "Code").text, xml.SubElement(error, "Message").text = code, message
        xml.SubElement(root, "RequestID").text = "00000000-0000-0000-0000-000000000000"
        return Answer(503 if code == "RequestLimitExceeded" else 400, xml.tostring(root), {"content-type": "text/xml"})
    shapes = {each.name: each for each in operation(call).error_shapes}
    status = {"AccessDeniedException": 403, "ThrottlingException": 429}.get(code, 400)
    if code in shapes:
        status = shapes[code].metadata["error"]["httpStatusCode"]
        given = {"ErrorCode": code, "Message": message, **more}
        assert not faults(shapes[code], given), faults(shapes[code], given)
    body = json.dumps({"ErrorCode": code, "Message": message, **more}).encode()
    return Answer(status, body, {"content-type": "application/json", "x-amzn-errortype": code})


def success(call: Call, content: dict[str, Any]) -> Answer:
    """An answer of EFS."""
    status = operation(call).http.get("responseCode", 200)
    body = b"" if status == 204 else json.dumps(content).encode()
    return Answer(status, body, {"content-type": "application/json"})
