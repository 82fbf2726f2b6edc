"""The way to a server: no address of a cloud's metadata, and no redirect that leads away from TLS or to another host.

A name of the outside may lead to an address of the inside, so that each address is looked at after it was resolved,
and the same address is connected to.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from lib.errors import InputError

METADATA = [
    ipaddress.ip_network(each)
    for each in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32")
]
"""As in src/trainyard/trainings/closed.py, whose policy keeps pods and Services out as well."""


def opener() -> urllib.request.OpenerDirector:
    """Opens URLs of http and https, within these limits."""
    return urllib.request.build_opener(_Redirects, _Plain, _Secure)


def refuse(address: str) -> None:
    """
    :raises InputError: the address is one of a link or of a cloud's metadata.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    if any(found in each for each in METADATA):
        raise InputError(f"The server's name leads to {address}, which no import reaches.", "Give another server.")


def connect(place: tuple[str, int], timeout: Any = None, source: Any = None) -> socket.socket:
    """As `socket.create_connection`, with each address looked at before it is connected to.

    :raises InputError: the name leads to an address that no import reaches.
    :raises OSError: no address answers.
    """
    failure: OSError | None = None
    # All of them first: a name with a good and a bad address is an attempt.
    found = socket.getaddrinfo(*place, type=socket.SOCK_STREAM)
    for *_, address in found:
        refuse(str(address[0]))
    for *_, address in found:
        try:
            return socket.create_connection((str(address[0]), int(address[1])), timeout, source)
        except OSError as error:
            failure = error
    raise failure or OSError(f"{place[0]} has no address")


class _PlainConnection(http.client.HTTPConnection):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._create_connection = connect


class _SecureConnection(http.client.HTTPSConnection):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._create_connection = connect


class _Plain(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_PlainConnection, req)


class _Secure(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_SecureConnection, req, context=self._context)  # type: ignore[attr-defined]


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows one to https, or to the same host by http where it was http before."""

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(str(rest[-1]))
        same = (before.scheme, before.hostname) == (after.scheme, after.hostname)
        if after.scheme != "https" and not (after.scheme == "http" and same):
            raise InputError(
                f"{req.full_url} leads to {after.scheme}://{after.netloc}, which is another host without TLS.",
                "Give the address that it leads to, if that is right.",
            )
        return super().redirect_request(req, *rest)
