"""The API server as seen from a node, with the standard library only."""

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
"""One request to a healthy API server takes milliseconds; after a power cut the connection may be swallowed."""
SECRETS_DIR = "/run"
"""Files with secrets lie in memory: what a killed module leaves there does not outlive the host's next start."""


@dataclass(frozen=True)
class Answer:
    """What a GET brought.

    :param status: HTTP status, 0 when there was no answer; `reason`: why there was none.
    :param final: waiting does not help, as with a certificate that has expired or a kubeconfig that cannot be read.
    :param body: what was answered with status 200.
    """

    status: int
    reason: str = ""
    final: bool = False
    body: bytes = b""


def trusting(ca: str) -> ssl.SSLContext:
    """A context that trusts this CA (PEM) and no other.

    create_default_context() is strict from Python 3.13 on, and refuses CAs that older kubeadm releases made.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ca)
    return context


def opener(context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """Opens URLs with these certificates, never through a proxy."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))


class Api:
    """The API server through a kubeconfig of this host; needs nothing but the standard library and kubectl.

    :param kubeconfig: path; kubectl turns it into JSON, so no YAML parser is needed.
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
        """The answer to a GET, or why there is none."""
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
    """`Api.get`; a kubeconfig that cannot be used (half written, its key file missing) is an answer, too."""
    try:
        return Api(kubeconfig).get(path)
    except (CommandError, OSError, ValueError, TypeError, KeyError, IndexError) as error:
        return Answer(0, f"{kubeconfig} cannot be used: {error}", final=True)


def get_json(kubeconfig: str, path: str) -> Any:
    """The object that a GET brought, None when there is none."""
    answer = api_get(kubeconfig, path)
    return json.loads(answer.body) if answer.status == 200 else None


def node_is_ready(endpoint: str, ca: str, token: str, name: str) -> bool:
    """Whether the cluster has a node of this name that is Ready, asked as a joining host does.

    :param endpoint: HOST:PORT of the API server; `ca`: PEM of its CA; `token`: bootstrap token, secret.
    :returns: false as well when nobody answers: the join itself says best what is wrong then.
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
