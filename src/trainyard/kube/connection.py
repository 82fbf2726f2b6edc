"""Connections to an API server: through the official client, or fast and read-only.

The official client handles kubeconfig and certificates. The fast connection is for interactive programs: importing the
official client takes half of their run time. It supports the kubeconfigs that kubeadm writes. The official client
handles all others. Neither uses a proxy of the environment: the API server is part of the site.
"""

from __future__ import annotations

import base64
import os
import ssl
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from ..core.errors import TrainyardError
from ..net.https import certificate_error, is_final
from .api import Api, KubeError, bounded, refusal

CALL_SECONDS = 20.0
CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 60.0
"""Read timeout while following a log. The caller then reconnects, because a lost node does not end the stream."""
PIECE_BYTES = 64 * 1024
"""Largest chunk of a streamed response, in bytes."""


KUBECONFIG: dict[str, dict[str, Any]] = {"kubeconfig": {"type": "path", "required": True}}
"""Argument of all modules that read a cluster; `plugins/doc_fragments/kube.py` documents it."""


def connect(kubeconfig: str) -> Api:
    """Return an `Api` for the current context of a kubeconfig, without connecting yet.

    :raises KubeError: status 0 if the file is missing; also `final` if it cannot be used.
    """
    try:
        from kubernetes.client import ApiClient, Configuration
        from kubernetes.client.exceptions import ApiException
        from kubernetes.config import load_kube_config
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        raise TrainyardError(
            f"The Python package kubernetes cannot be imported: {error}.",
            remedy="Install requirements.txt into the environment that runs Ansible.",
        ) from error

    if not os.path.exists(kubeconfig):
        raise KubeError(
            f"There is no kubeconfig {kubeconfig}.",
            status=0,
            remedy="It is written when the control plane is installed; run site.yml first.",
        )
    configuration = Configuration()
    configuration.retries = False
    configuration.proxy = None
    try:
        load_kube_config(config_file=kubeconfig, client_configuration=configuration)
        client = ApiClient(configuration)
    except Exception as error:  # the loader raises a dozen unrelated types for one meaning
        raise KubeError(
            f"The kubeconfig {kubeconfig} cannot be used: {str(error).rstrip('.')}.",
            status=0,
            remedy="Delete it and run site.yml, which fetches it again from the control plane.",
            final=True,
        ) from error

    def send(
        method: str, path: str, query: list[tuple[str, str]], body: Any, content: str, seconds: float
    ) -> tuple[int, Any]:
        """Return the status and the unread response; for a refusal, or without an answer, the text instead."""
        headers = {"Accept": "application/json, */*", "Content-Type": content}
        try:
            answer = client.call_api(
                path,
                method,
                query_params=query,
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=(CONNECT_SECONDS, seconds),
            )
        except ApiException as error:
            text = error.body.decode(errors="replace") if isinstance(error.body, bytes) else error.body
            return int(error.status or 0), str(text or error.reason)
        except (HTTPError, OSError, AttributeError) as error:
            refuse_certificate(error, kubeconfig)
            # The client fails with an AttributeError while it handles a failed handshake, which is then the context.
            report = error.__context__ if isinstance(error, AttributeError) else error
            if not isinstance(report, ApiException | HTTPError | OSError):
                raise
            return 0, str(getattr(report, "reason", report))
        return int(answer.status), answer

    def transport(method: str, path: str, query: list[tuple[str, str]], body: Any, content: str) -> tuple[int, str]:
        status, answer = send(method, path, query, body, content, CALL_SECONDS)
        if isinstance(answer, str):
            return status, answer
        try:
            return status, bounded(lambda size: bytes(answer.read(size, decode_content=True)))
        except (HTTPError, OSError) as error:
            return 0, str(getattr(error, "reason", error))

    def stream(path: str, query: list[tuple[str, str]]) -> Iterator[bytes]:
        seconds = SILENCE_SECONDS if ("follow", "true") in query else CALL_SECONDS
        status, answer = send("GET", path, query, None, "application/json", seconds)
        if isinstance(answer, str):
            raise refusal(path, status, answer)
        try:
            yield from answer.stream(PIECE_BYTES)
        except (HTTPError, OSError) as error:
            raise KubeError(f"The connection broke off: {error}.", status=0) from error
        finally:
            # A reader may stop early. The connection then has unread data and cannot be reused.
            answer.close()

    return Api(transport, stream)


def refuse_certificate(error: BaseException, kubeconfig: str) -> None:
    """Raise an error if the server's certificate was refused and waiting cannot change that."""
    reason = certificate_error(error)
    if reason and is_final(reason):
        raise KubeError(
            f"The API server's certificate is refused: {reason.verify_message}.",
            status=0,
            remedy=f"Check that {kubeconfig} belongs to this cluster. Then run `kubeadm certs check-expiration` on a "
            "control plane host.",
            final=True,
        ) from error


_CLUSTER = {"server", "certificate-authority", "certificate-authority-data"}
_USER = {"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token"}
"""Supported fields. A kubeconfig with any other field is left to the official client."""


def connect_to_look(kubeconfig: str) -> Api:
    """Return a read-only (GET) `Api` for the current context of a kubeconfig.

    :raises KubeError: as `connect`.
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
    if not plain or cluster.keys() - _CLUSTER or user.keys() - _USER:
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
