"""Connections to an API server. The official client handles kubeconfig, certificates and proxies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..core.errors import TrainyardError
from ..net.https import certificate_error, is_final
from .answer import KubeError, bounded
from .api import Api, refusal

CALL_SECONDS = 20.0
CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 60.0
"""Read timeout while following a log. The caller then reconnects, because a lost node does not end the stream."""
PIECE_BYTES = 64 * 1024
"""Largest chunk of a streamed response, in bytes."""


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
