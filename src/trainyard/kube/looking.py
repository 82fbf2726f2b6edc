"""A fast read-only connection for interactive programs: importing the official client takes half of their run time.

It supports the kubeconfigs that kubeadm writes. All others are handled by the official client.
"""

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
"""Supported fields. A kubeconfig with any other field is left to the official client."""
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def connect_to_look(kubeconfig: str) -> Api:
    """Return a read-only (GET) `Api` for the current context of a kubeconfig.

    :raises KubeError: as `kubeconfig.connect`.
    """
    try:
        server = _server(kubeconfig)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        server = None  # The official client reports the error.
    return Api(server.ask) if server else connect(kubeconfig)


class _Server:
    """A client of one API server; each thread reuses its own connection.

    :param login: value of the Authorization header; empty for none.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext, login: str, kubeconfig: str) -> None:
        self._place, self._tls, self._kubeconfig = (host, port), tls, kubeconfig
        self._headers = {"Accept": "application/json, */*", **({"Authorization": login} if login else {})}
        self._mine = threading.local()

    def ask(self, method: str, path: str, query: list[tuple[str, str]], body: Any, content: str) -> tuple[int, str]:
        """Send one request. If the server has closed the connection meanwhile, reconnect once."""
        if method != "GET" or body is not None:
            raise ValueError(f"{method} {path}: this connection is read-only")
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
        """Return the result for a failed request.

        :raises KubeError: the server's certificate is refused and waiting cannot change that.
        """
        refuse_certificate(error, self._kubeconfig)
        return 0, str(error) or type(error).__name__


def _server(kubeconfig: str) -> _Server | None:
    """Return the server of a kubeconfig; None if the kubeconfig has unsupported fields."""
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
    # Python 3.13 enables strict RFC 5280 checks; the certificates of a site's own CA may lack those extensions.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if "client-certificate" in user or "client-certificate-data" in user:
        _log_in(tls, _pem(user, "client-certificate", folder) + "\n" + _pem(user, "client-key", folder))
    login = f"Bearer {user['token']}" if user.get("token") else ""
    return _Server(str(place.hostname), place.port or 443, tls, login, kubeconfig)


def _named(known: Mapping[str, Any], many: str, one: str, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(each for each in known[many] if each["name"] == name)[one]
    return found


def _pem(known: Mapping[str, Any], name: str, folder: str) -> str:
    """Return the PEM text of a field, inline or from the file that it names. Inline data wins, as in kubectl."""
    if data := known.get(f"{name}-data"):
        return base64.b64decode(data, validate=True).decode("ascii")
    with open(os.path.join(folder, known[name]), encoding="ascii") as stream:
        return stream.read()


def _log_in(tls: ssl.SSLContext, pem: str) -> None:
    """Load a client certificate. Its key passes through an in-memory file, because OpenSSL reads only files."""
    descriptor = os.memfd_create("client")
    try:
        os.write(descriptor, pem.encode("ascii"))
        tls.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
