"""Attacks by root of one worker: another Python, hostile facts, the kubelet's own credentials, another kubelet."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import red_node_python as hostile
import yaml
from drift_lab import answering
from stand import Stand

from trainyard.core.errors import TrainyardError
from trainyard.kube.api import Api, KubeError
from trainyard.kube.connection import connect

ATTACKER, VICTIM = "worker2", "cp1"
FOLDER = "/opt/red-node"
CREDENTIAL = "/var/lib/kubelet/pki/kubelet-client-current.pem"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SERVING, CLIENT = "kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"
MERGE = "application/merge-patch+json"
INSTALL = f"""
real=$(readlink -f /usr/bin/python3)
mkdir -p {FOLDER}
readlink /usr/bin/python3 > {FOLDER}/link
{{ echo "#!$real"; cat; }} > {FOLDER}/python
chmod 755 {FOLDER}/python
echo honest {VICTIM} > {FOLDER}/mode
ln -sfn {FOLDER}/python /usr/bin/python3
mkdir -p /etc/ansible/facts.d
printf '{{"x": "%s", "{{{{ 1 }}}}": 1}}' "{hostile.TEMPLATE}" > /etc/ansible/facts.d/red.fact
printf '#!/bin/sh\\nhead -c 1000000 /dev/zero | tr "\\\\0" x; printf "\\\\033[2J"\\n' > /etc/ansible/facts.d/redder.fact
chmod 755 /etc/ansible/facts.d/redder.fact
"""
RESTORE = f"""
systemctl stop red-kubelet.service 2> /dev/null || true
if [ -s {FOLDER}/link ]; then ln -sfn "$(cat {FOLDER}/link)" /usr/bin/python3; fi
rm -rf {FOLDER} /etc/ansible/facts.d/red.fact /etc/ansible/facts.d/redder.fact
rmdir /etc/ansible/facts.d /etc/ansible 2> /dev/null || true
systemctl start kubelet
"""
ANOTHER_KUBELET = f"""
cd {FOLDER}
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=system:node:{ATTACKER} \\
  -addext subjectAltName=DNS:{ATTACKER} -keyout key.pem -out crt.pem 2> /dev/null
systemctl stop kubelet
systemd-run --quiet --unit=red-kubelet --working-directory={FOLDER} \\
  openssl s_server -quiet -accept 10250 -key key.pem -cert crt.pem -www
until openssl s_client -connect 127.0.0.1:10250 < /dev/null > /dev/null 2>&1; do sleep 0.1; done
"""


def script(stand: Stand, text: str, given: str = "") -> str:
    return stand.on_node(ATTACKER, "sh", "-ec", text, given=given)


def install(stand: Stand) -> None:
    """Replace the node's Python by the hostile one, in honest mode, and add hostile facts."""
    script(stand, INSTALL, given=Path(hostile.__file__).read_text(encoding="utf-8"))


def mode(stand: Stand, name: str) -> None:
    script(stand, f"echo {name} {VICTIM} > {FOLDER}/mode")


def restore(stand: Stand) -> None:
    """Restore the node, even after an incomplete installation; wait until it is Ready."""
    script(stand, RESTORE)
    answering(stand)


@contextmanager
def another_kubelet(stand: Stand) -> Iterator[None]:
    """Replace the node's kubelet by a server with another certificate."""
    try:
        script(stand, ANOTHER_KUBELET)
        yield
    finally:
        script(stand, "systemctl stop red-kubelet.service || true; systemctl start kubelet")
        answering(stand)


def as_node(stand: Stand) -> Api:
    """Return the API server for a user with the kubelet's own credentials."""
    pem = base64.b64encode(stand.bytes_of(ATTACKER, "cat", CREDENTIAL)).decode()
    known = yaml.safe_load((stand.state / "kubeconfig").read_text(encoding="utf-8"))
    # The file has both certificate and key; each reader takes its part.
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "site", "cluster": known["clusters"][0]["cluster"]}],
        "users": [{"name": "node", "user": {"client-certificate-data": pem, "client-key-data": pem}}],
        "contexts": [{"name": "node", "context": {"cluster": "site", "user": "node"}}],
        "current-context": "node",
    }
    file = stand.folder / "node.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return connect(str(file))


def status(api: Api, method: str, path: str, body: Any = None, content: str = "application/json") -> int:
    """Return the status of a refusal; 0 if the request is accepted."""
    try:
        api.call(method, path, body=body, content_type=content, what="red-node")
    except KubeError as error:
        return error.status or -1
    return 0


def refused(api: Api) -> list[str]:
    """Send requests that Kubernetes refuses to a kubelet; return a sentence for each that is not refused."""
    labels = {"metadata": {"labels": {"node-restriction.kubernetes.io/red": "x"}}}
    nodes, own = "/api/v1/nodes", f"/api/v1/nodes/{ATTACKER}"
    tries: list[tuple[str, str, Any, str]] = [
        ("GET", "/api/v1/secrets", None, MERGE),
        ("GET", "/api/v1/namespaces/kube-system/secrets", None, MERGE),
        ("PATCH", f"{nodes}/{VICTIM}", {"metadata": {"labels": {"red": "x"}}}, MERGE),
        ("PATCH", f"{nodes}/{VICTIM}/status", {"status": {"conditions": []}}, MERGE),
        ("PATCH", own, labels, MERGE),
        ("PATCH", own, {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, MERGE),
        ("DELETE", f"{nodes}/{VICTIM}", None, MERGE),
    ]
    return [f"{method} {path} is answered with {said}" for method, path, body, content in tries
            if (said := status(api, method, path, body, content)) != 403]  # fmt: skip


def label(api: Api, wanted: bool) -> None:
    """Set or remove labels and an annotation that a node may give itself, with unexpected values."""
    values = {"gpu.memory": "abc", "gpu.count": "9" * 40, "cuda.driver-version.full": "x"}
    labels = {f"nvidia.com/{name}": value for name, value in values.items()}
    meta = {"labels": labels, "annotations": {"red": hostile.texts(VICTIM)}}
    if not wanted:
        meta = {kind: dict.fromkeys(each) for kind, each in meta.items()}  # type: ignore[arg-type]
    api.call("PATCH", f"/api/v1/nodes/{ATTACKER}", body={"metadata": meta}, content_type=MERGE, what="red-node")


def request(name: str, subject: str, signer: str) -> dict[str, Any]:
    """Return a request for a certificate.

    :param subject: in the format of OpenSSL.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/key", "-subj", subject,
             "-addext", f"subjectAltName=DNS:{VICTIM}"],
            capture_output=True, check=True, timeout=60,
        )  # fmt: skip
    usages = ["digital signature", "server auth" if signer == SERVING else "client auth"]
    spec = {"request": base64.b64encode(done.stdout).decode(), "signerName": signer, "usages": usages}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


WANTED = {
    "red-serving": (f"/O=system:nodes/CN=system:node:{VICTIM}", SERVING),
    "red-own": (f"/O=system:nodes/CN=system:node:{ATTACKER}", SERVING),
    "red-client": (f"/O=system:nodes/CN=system:node:{VICTIM}", CLIENT),
    "red-masters": ("/O=system:masters/CN=red", "kubernetes.io/kube-apiserver-client"),
}
"""Requests of the node: in another node's name, in its own name for another's address, and for all rights."""


def ask(api: Api) -> list[str]:
    """Return the names of the requests that the API server accepts; the others are refused immediately."""
    return [name for name, (subject, signer) in WANTED.items()
            if status(api, "POST", REQUESTS, request(name, subject, signer)) == 0]  # fmt: skip


def approved(api: Api, names: list[str]) -> list[str]:
    """Return approved or signed requests, a sentence each; all are removed."""
    wrong = []
    for name in names:
        found = json.loads(api.call("GET", f"{REQUESTS}/{name}")).get("status") or {}
        kinds = [each.get("type") for each in found.get("conditions") or []]
        wrong += [f"{name} is approved"] if "Approved" in kinds or found.get("certificate") else []
        api.call("DELETE", f"{REQUESTS}/{name}")
    return wrong


def misled(stand: Stand, pod: str) -> list[str]:
    """Return answers that the API server forwards from a server that is not a kubelet of the cluster."""
    wrong = []
    for path in (f"/api/v1/nodes/{ATTACKER}/proxy/healthz", f"/api/v1/namespaces/kube-system/pods/{pod}/log"):
        try:
            stand.api.call("GET", path)
        except KubeError as error:
            wrong += [] if "x509" in error.message or "certificate" in error.message else [f"{path}: {error.message}"]
        except (TrainyardError, ValueError) as error:
            wrong.append(f"{path} is answered by a server that is not a kubelet: {error}")
        else:
            wrong.append(f"{path} is answered by a server without a certificate of the cluster")
    return wrong
