"""A recording proxy between boto3 and moto: every request and every answer is checked against botocore's models."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
import xml.etree.ElementTree as xml
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from tests.aws.gaps import Gaps
from tests.aws.model import Answer, Call, check_answer, failure, faults, operation
from tests.aws.wire import read

Rule = Callable[[Call], Answer | None]

LISTS = {"DescribeSubnets": "subnetSet", "DescribeSecurityGroups": "securityGroupInfo",
         "DescribeNetworkInterfaces": "networkInterfaceSet"}  # fmt: skip
"""Operations of EC2 whose answers the proxy cuts into pages -> the element that is the list."""


PATIENCE = 120
"""Seconds for an answer of moto, on a machine that does other things, too."""


class Lost(Exception):
    """The connection ends without an answer."""


class Proxy:
    """Answers as AWS does, on a moto.

    :param moto: host and port.
    """

    def __init__(self, moto: tuple[str, int]) -> None:
        self._moto = moto
        self._lock = threading.RLock()
        self._request: tuple[str, str, bytes] = ("", "", b"")
        self.url = ""
        self.reset()

    def reset(self) -> None:
        """Forget everything, in moto, too."""
        connection = http.client.HTTPConnection(*self._moto, timeout=PATIENCE)
        connection.request("POST", "/moto-api/reset")
        assert connection.getresponse().status == 200
        self.calls: list[Call] = []
        self.problems: list[str] = []
        """What a model refused; a test that leaves any has failed."""
        self.rules: list[Rule] = []
        """Asked in turn before a call is carried out; the first answer counts."""
        self.losses: list[Rule] = []
        """The same after a call was carried out, in place of its answer."""
        self.gaps = Gaps(self._forward)

    def refuse(self, name: str, code: str, times: int = 1, message: str = "Because of the test.") -> None:
        """Answer a call, such as `efs:CreateFileSystem`, with an error."""
        left = [None] * times

        def rule(call: Call) -> Answer | None:
            if call.name != name or not left:
                return None
            left.pop()
            return failure(call, code, message)

        self.rules.append(rule)

    def lose(self, name: str, times: int = 1) -> None:
        """Carry a call out, and break the connection before its answer."""
        left = [None] * times

        def rule(call: Call) -> None:
            if call.name == name and left:
                left.pop()
                raise Lost

        self.losses.append(rule)

    def kill(self, pid: Callable[[], int], *, number: int, answered: bool) -> None:
        """Kill a process at its nth call that changes something, before the call is carried out or after."""
        seen: list[Call] = []

        def rule(call: Call) -> None:
            seen.extend([call] if call.write else [])
            if call.write and len(seen) == number:
                os.kill(pid(), signal.SIGKILL)
                raise Lost

        (self.losses if answered else self.rules).append(rule)

    def names(self, *, write: bool | None = None) -> list[str]:
        """The calls so far, or only those that change or do not change something."""
        return [call.name for call in self.calls if write is None or call.write is write]

    def handle(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to one request; one at a time."""
        with self._lock:
            call = read(method, target, headers, body)
            self._request = method, target, body
            self.problems += [
                f"request {call.name}: {each}" for each in faults(operation(call).input_shape, call.parameters)
            ]
            self.calls.append(call)
            answer = next((found for rule in self.rules if (found := rule(call))), None) or self._carried_out(call)
            for rule in self.losses:
                answer = rule(call) or answer
            self.problems += [f"answer: {each}" for each in check_answer(call, answer)]
            return answer

    def _carried_out(self, call: Call) -> Answer:
        if call.service == "efs":
            return self.gaps.answer(call)
        if call.operation == "DeleteSecurityGroup" and self._in_use(call):
            return failure(call, "DependencyViolation", "The group has a dependent object.")
        form = dict(parse_qsl(self._request[2].decode(), keep_blank_values=True))
        start = int(form.pop("NextToken", "0"))
        answer = self._send(call, "POST", "/", urlencode(form).encode())
        return self._page(call, answer, start) if self.gaps.page and call.operation in LISTS else answer

    def _in_use(self, call: Call) -> bool:
        """Whether a network interface has the group, which moto does not look at."""
        form = {"Action": "DescribeNetworkInterfaces", "Version": "2016-11-15", "Filter.1.Name": "group-id",
                "Filter.1.Value.1": call.parameters["GroupId"]}  # fmt: skip
        return b"<networkInterfaceId>" in self._send(call, "POST", "/", urlencode(form).encode()).body

    def _page(self, call: Call, answer: Answer, start: int) -> Answer:
        root = xml.fromstring(answer.body)
        space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
        found = root.find(f"{space}{LISTS[call.operation]}")
        if found is None:
            return answer
        items, end = list(found), start + self.gaps.page
        for item in [*items[:start], *items[end:]]:
            found.remove(item)
        if end < len(items):
            xml.SubElement(root, f"{space}nextToken").text = str(end)
        return Answer(answer.status, xml.tostring(root), answer.headers)

    def _forward(self, call: Call, parameters: dict[str, Any]) -> Answer:
        """A call of EFS with other parameters, as botocore would write it."""
        model = operation(call)
        path, query, body = model.http["requestUri"], [], {}
        for name, value in parameters.items():
            serialization = model.input_shape.members[name].serialization
            where, wire = serialization.get("location"), serialization.get("name", name)
            if where == "uri":
                path = path.replace(f"{{{wire}}}", value)
            elif where == "querystring":
                query += [(wire, each) for each in value] if isinstance(value, list) else [(wire, value)]
            else:
                body[name] = value
        target = f"{path}?{urlencode(query)}" if query else path
        return self._send(call, model.http["method"], target, json.dumps(body).encode() if body else b"")

    def _send(self, call: Call, method: str, target: str, body: bytes) -> Answer:
        kept = {
            name: call.headers[name] for name in ("authorization", "content-type", "x-amz-date") if name in call.headers
        }
        connection = http.client.HTTPConnection(*self._moto, timeout=PATIENCE)
        connection.request(method, target, body=body or None, headers={**kept, "host": call.headers.get("host", "")})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, answer.read(), headers)
