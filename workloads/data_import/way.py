"""Connections to a server, except to cloud metadata addresses, and redirects, except away from TLS or to another host.

A public name may resolve to an internal address. Each address is therefore checked after its resolution, and the
connection uses the checked address.
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
"""The same as in src/trainyard/trainings/data_import.py, whose policy also keeps pods and Services out."""


def opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https URLs within these limits."""
    return urllib.request.build_opener(_Redirects, _Plain, _Secure)


def refuse(address: str) -> None:
    """Check that an address may be reached.

    :raises InputError: it is a link-local address or an address of cloud metadata.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    if any(found in each for each in METADATA):
        raise InputError(f"The server's name resolves to {address}, which no import reaches.", "Set another server.")


def connect(place: tuple[str, int], timeout: Any = None, source: Any = None) -> socket.socket:
    """Connect as `socket.create_connection` does, but check each address first.

    :raises InputError: the name resolves to an address that no import reaches.
    :raises OSError: no address answers.
    """
    failure: OSError | None = None
    # All are checked first, because a name with both a good and a bad address is suspicious.
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
    """A handler that follows redirects to https, and from http to the same host by http."""

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(str(rest[-1]))
        same = (before.scheme, before.hostname) == (after.scheme, after.hostname)
        if after.scheme != "https" and not (after.scheme == "http" and same):
            raise InputError(
                f"{req.full_url} redirects to {after.scheme}://{after.netloc}, which is another host without TLS.",
                "If that is intended, set the address that it redirects to.",
            )
        return super().redirect_request(req, *rest)
