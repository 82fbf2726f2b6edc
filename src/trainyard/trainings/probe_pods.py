"""The pods of the isolation probe. Pure data, no cluster."""

from __future__ import annotations

from pathlib import PurePosixPath

from ..kube.api import Object
from .model import Role, Training
from .names import MANAGED, NAME_LABEL
from .objects import policy
from .pods import container_security, pod_security, pull_secrets
from .template import hostname

PROBE_LABEL = "trainyard.dev/probe"

PROBE_PROGRAM = """\
import json, socket, sys, time

def attempt(host, port):
    try:
        address = socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)[0][4]
    except OSError as error:
        return "unresolved", str(error)
    try:
        socket.create_connection(address, 1.0).close()
    except TimeoutError:
        return "timeout", address[0]
    except OSError as error:
        return "refused", str(error)
    return "connected", address[0]

end = time.time() + float(sys.argv[1])
while time.time() < end:
    for name, host, port in (each.split(",") for each in sys.argv[2:]):
        begin = time.time()
        outcome, detail = attempt(host, port)
        seen = {"target": name, "outcome": outcome, "detail": detail, "begin": begin, "end": time.time()}
        print(json.dumps(seen), flush=True)
    time.sleep(0.2)
"""
"""Program that tries two addresses repeatedly: `target` is the training's port, `control` is one that must answer."""


TARGET_PROGRAM = """\
import json, socket, sys, time

server = socket.create_server(("", int(sys.argv[1])))
server.settimeout(0.2)
end = time.time() + float(sys.argv[2])
while time.time() < end:
    print(json.dumps({"event": "connected", "time": time.time()}), flush=True)
    try:
        server.accept()[0].close()
    except TimeoutError:
        pass
"""
"""Program that listens in place of a pod of the run, and reports this repeatedly."""


def probe_name(training: Training) -> str:
    return f"{training.name}-stranger"


def probe(training: Training, role: Role, control: str, *, seconds: int, target: str = "") -> list[Object]:
    """Return the isolation probe: a pod of the same image that is not part of the run.

    Its egress is unrestricted, so that only the run's own policy can block it.

    :param role: role whose port it tries.
    :param control: `host,port` that must answer, to show that its network works.
    :param seconds: how long it keeps trying.
    :param target: host that it tries on that port; empty for the role's first pod.
    """
    name = probe_name(training)
    where = f"{target or hostname(training, role.name, 0)},{role.port}"
    arguments = [str(seconds), f"target,{where}", f"control,{control}"]
    labels = {PROBE_LABEL: training.name}
    admitted = policy(
        training, name, {"podSelector": {"matchLabels": labels}, "policyTypes": ["Egress"], "egress": [{}]}
    )
    return [admitted, _small_pod(training, role, name, labels, PROBE_PROGRAM, arguments, seconds)]


def target_name(training: Training) -> str:
    return f"{training.name}-target"


def target(training: Training, role: Role, *, seconds: int) -> Object:
    """Return a pod with the run's labels that listens on its port, to probe a run that has ended.

    :param seconds: how long it listens.
    """
    labels = {NAME_LABEL: training.name}
    arguments = [str(role.port), str(seconds)]
    return _small_pod(training, role, target_name(training), labels, TARGET_PROGRAM, arguments, seconds)


def _small_pod(
    training: Training, role: Role, name: str, labels: Object, program: str, arguments: list[str], seconds: int
) -> Object:
    """Return a pod that runs one of the programs above with the Python of the role's image."""
    own = role.command[0]
    python = own if PurePosixPath(own).name.startswith("python") else "python3"
    container = {
        "name": "probe",
        "image": role.image,
        "imagePullPolicy": training.image_pull_policy,
        "command": [python, "-c", program],
        "args": arguments,
        "resources": {
            "limits": {"cpu": "500m", "memory": "64Mi"},
            "requests": {"cpu": "50m", "memory": "64Mi"},
        },
        "securityContext": container_security(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": training.namespace, "labels": {**MANAGED, **labels}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": seconds + 60,
            **pull_secrets(training),
            "securityContext": pod_security(),
            "containers": [container],
        },
    }
