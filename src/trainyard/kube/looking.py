"""A connection for programs that only look, and whose caller waits: the official client takes half of their time to
import. It does what a kubeconfig of kubeadm needs; every other one is left to the official client."""

from __future__ import annotations

import base64
import os
import ssl
import threading
from collections.abc import Mapping
from http.client import HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from .answer import bounded
from .api import Api
from .kubeconfig import CALL_SECONDS, CONNECT_SECONDS, connect, refuse_certificate

_CLUSTER = {"server", "certificate-authority", "certificate-authority-data"}
_USER = {"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token"}
"""Fields that are understood here; one with another field may mean anything."""
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def connect_to_look(kubeconfig: str) -> Api:
    """An `Api` for the current context of a kubeconfig, which can ask for things (GET) and change nothing.

    :raises KubeError: as `kubeconfig.connect`.
    """
    try:
        server = _server(kubeconfig)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        server = None  # Whatever is wrong, the official client says it.
    return Api(server.ask) if server else connect(kubeconfig)


class _Server:
    """One API server; each thread has a connection of its own, which is used again.

    :param login: value of the header Authorization; empty for none.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext, login: str, kubeconfig: str) -> None:
        self._place, self._tls, self._kubeconfig = (host, port), tls, kubeconfig
        self._headers = {"Accept": "application/json, */*", **({"Authorization": login} if login else {})}
        self._mine = threading.local()

    def ask(self, method: str, path: str, query: list[tuple[str, str]], body: Any, content: str) -> tuple[int, str]:
        """One request; a connection that the server has closed meanwhile is made anew, once."""
        if method != "GET" or body is not None:
            raise ValueError(f"{method} {path}: this connection only looks")
        target = f"{path}?{urlencode(query)}" if query else path
        used = getattr(self._mine, "connection", None)
        try:
            return self._once(target)
        except (HTTPException, OSError) as error:
            self._mine.connection = None
            if used is None or isinstance(error, TimeoutError):
                return self._failed(error)
        try:
            return self._once(target)
        except (HTTPException, OSError) as error:
            self._mine.connection = None
            return self._failed(error)

    def _once(self, target: str) -> tuple[int, str]:
        connection: HTTPSConnection | None = getattr(self._mine, "connection", None)
        if connection is None:
            connection = HTTPSConnection(*self._place, timeout=CONNECT_SECONDS, context=self._tls)
            connection.connect()
            connection.sock.settimeout(CALL_SECONDS)
            self._mine.connection = connection
        connection.request("GET", target, headers=self._headers)
        answer = connection.getresponse()
        return answer.status, bounded(answer.read)

    def _failed(self, error: Exception) -> tuple[int, str]:
        """
        :raises KubeError: its certificate is refused for good.
        """
        refuse_certificate(error, self._kubeconfig)
        return 0, str(error) or type(error).__name__


def _server(kubeconfig: str) -> _Server | None:
    """The server of a kubeconfig; None where that says more than is understood here."""
    import yaml

    with open(kubeconfig, encoding="utf-8") as stream:
        known = yaml.load(stream, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both loaders are safe ones
    context = _named(known, "contexts", "context", known["current-context"])
    cluster = _named(known, "clusters", "cluster", context["cluster"])
    user = _named(known, "users", "user", context["user"])
    place = urlsplit(cluster["server"])
    plain = place.scheme == "https" and place.hostname and place.path in ("", "/")
    if not plain or cluster.keys() - _CLUSTER or user.keys() - _USER or any(map(os.environ.get, _PROXIES)):
        return None
    folder = os.path.dirname(os.path.abspath(kubeconfig))
    tls = ssl.create_default_context(cadata=_pem(cluster, "certificate-authority", folder))
    # Python 3.13 turned strict RFC 5280 checks on; a site's own CA may be older than those extensions.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if "client-certificate" in user or "client-certificate-data" in user:
        _log_in(tls, _pem(user, "client-certificate", folder) + "\n" + _pem(user, "client-key", folder))
    login = f"Bearer {user['token']}" if user.get("token") else ""
    return _Server(str(place.hostname), place.port or 443, tls, login, kubeconfig)


def _named(known: Mapping[str, Any], many: str, one: str, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(each for each in known[many] if each["name"] == name)[one]
    return found


def _pem(known: Mapping[str, Any], name: str, folder: str) -> str:
    """What a field has, in it or in the file that it names; the field counts, as for kubectl."""
    if data := known.get(f"{name}-data"):
        return base64.b64decode(data, validate=True).decode("ascii")
    with open(os.path.join(folder, known[name]), encoding="ascii") as stream:
        return stream.read()


def _log_in(tls: ssl.SSLContext, pem: str) -> None:
    """Have a client certificate; its key goes through memory, for OpenSSL reads files alone."""
    descriptor = os.memfd_create("client")
    try:
        os.write(descriptor, pem.encode("ascii"))
        tls.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
