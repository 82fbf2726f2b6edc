"""Access to the API server from a node, with the standard library only."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from ..core.command import run
from ..core.errors import CommandError
from ..net.https import certificate_error, is_final

REQUEST_SECONDS = 5.0
"""A request to a healthy API server takes milliseconds; after a power cut, packets may be lost silently."""
SECRETS_DIR = "/run"
"""In-memory file system for files with secrets: files left by a killed module do not survive a reboot."""


@dataclass(frozen=True)
class Answer:
    """The response to a GET.

    :param status: HTTP status, or 0 without an answer; `reason`: why there was none.
    :param final: waiting does not help, for example if a certificate has expired or the kubeconfig is unreadable.
    :param body: the body of a response with status 200.
    """

    status: int
    reason: str = ""
    final: bool = False
    body: bytes = b""


def trusting(ca: str) -> ssl.SSLContext:
    """Return a context that trusts only this CA (PEM).

    From Python 3.13 on, create_default_context() is strict and refuses CAs of older kubeadm releases.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ca)
    return context


def opener(context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """Return an opener that uses these certificates and never a proxy."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))


class Api:
    """A client that uses a kubeconfig of this host; it needs only the standard library and kubectl.

    :param kubeconfig: path; kubectl converts it to JSON, so no YAML parser is needed.
    """

    def __init__(self, kubeconfig: str) -> None:
        view = run(
            ["kubectl", "config", "view", "--raw", "--output=json", f"--kubeconfig={kubeconfig}"], timeout=30
        ).stdout
        config = json.loads(view)
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        self._server = str(cluster["server"]).rstrip("/")
        context = trusting(base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "client-certificate-data" in user:
            pair = base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
            with tempfile.NamedTemporaryFile(dir=SECRETS_DIR) as stream:
                stream.write(pair)
                stream.flush()
                context.load_cert_chain(stream.name)
        else:
            context.load_cert_chain(user["client-certificate"], user["client-key"])
        self._opener = opener(context)

    def get(self, path: str) -> Answer:
        """Send a GET; return the response, or the reason for its absence."""
        try:
            with self._opener.open(self._server + path, timeout=REQUEST_SECONDS) as response:
                return Answer(int(response.status), body=response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code)
        except urllib.error.URLError as error:
            refusal = certificate_error(error)
            return Answer(0, str(error.reason), refusal is not None and is_final(refusal))
        except (OSError, ValueError) as error:
            return Answer(0, str(error))


def api_get(kubeconfig: str, path: str) -> Answer:
    """Call `Api.get`; an unusable kubeconfig (half written, key file missing) gives an `Answer` instead of an error."""
    try:
        return Api(kubeconfig).get(path)
    except (CommandError, OSError, ValueError, TypeError, KeyError, IndexError) as error:
        return Answer(0, f"{kubeconfig} cannot be used: {error}", final=True)


def get_json(kubeconfig: str, path: str) -> Any:
    """Return the JSON object that a GET returns, or None."""
    answer = api_get(kubeconfig, path)
    return json.loads(answer.body) if answer.status == 200 else None


def node_is_ready(endpoint: str, ca: str, token: str, name: str) -> bool:
    """Return whether the cluster has a Ready node of this name, with the credentials of a joining host.

    :param endpoint: HOST:PORT of the API server; `ca`: PEM of its CA; `token`: bootstrap token, secret.
    :returns: also false without an answer, because the join itself reports the cause best.
    """
    request = urllib.request.Request(
        f"https://{endpoint}/api/v1/nodes/{name}", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with opener(trusting(ca)).open(request, timeout=REQUEST_SECONDS) as response:
            conditions = json.load(response)["status"]["conditions"]
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    except (OSError, ValueError, KeyError, TypeError):
        return False
