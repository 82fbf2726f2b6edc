"""The API server as seen from a node, with the standard library only."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import urllib.error
import urllib.request

from ..core.command import run
from ..core.errors import CommandError

REQUEST_SECONDS = 5.0
"""One request to a healthy API server takes milliseconds; after a power cut the connection may be swallowed."""


def _trusting(ca: str) -> ssl.SSLContext:
    """A context that trusts this CA (PEM) and no other.

    create_default_context() is strict from Python 3.13 on, and refuses CAs that older kubeadm releases made.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ca)
    return context


def _opener(context: ssl.SSLContext) -> urllib.request.OpenerDirector:
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
        context = _trusting(base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "client-certificate-data" in user:
            pair = base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
            with tempfile.NamedTemporaryFile() as stream:
                stream.write(pair)
                stream.flush()
                context.load_cert_chain(stream.name)
        else:
            context.load_cert_chain(user["client-certificate"], user["client-key"])
        self._opener = _opener(context)

    def status(self, path: str) -> int:
        """HTTP status of a GET; 0 when the server cannot be reached or is not the one that the kubeconfig trusts."""
        try:
            with self._opener.open(self._server + path, timeout=REQUEST_SECONDS) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, ValueError):
            return 0


def api_status(kubeconfig: str, path: str) -> int:
    """`Api.status`, and 0 as well for a kubeconfig that cannot be used (half written, its key file missing)."""
    try:
        return Api(kubeconfig).status(path)
    except (CommandError, OSError, ValueError, TypeError, KeyError, IndexError):
        return 0


def node_is_ready(endpoint: str, ca: str, token: str, name: str) -> bool:
    """Whether the cluster has a node of this name that is Ready, asked as a joining host does.

    :param endpoint: HOST:PORT of the API server; `ca`: PEM of its CA; `token`: bootstrap token, secret.
    :returns: false as well when nobody answers: the join itself says best what is wrong then.
    """
    request = urllib.request.Request(
        f"https://{endpoint}/api/v1/nodes/{name}", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with _opener(_trusting(ca)).open(request, timeout=REQUEST_SECONDS) as response:
            conditions = json.load(response)["status"]["conditions"]
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    except (OSError, ValueError, KeyError, TypeError):
        return False
