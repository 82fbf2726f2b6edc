"""Logins of the console: tokens of its users, each bound to a Secret of its own, so that deleting that ends it."""

from __future__ import annotations

import json
import os
import secrets
import string
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..core.errors import TrainyardError
from ..core.untrusted import at, moment, number
from ..kube.api import Api, KubeError, Object

NAMESPACE = "trainyard-console"
USER, TOKEN = "trainyard.dev/console-user", "trainyard.dev/console-token"
"""Labels: of a user's account, and of what a user's token is bound to."""
LEVEL, HOURS = "trainyard.dev/console-level", "trainyard.dev/console-token-hours"
"""Annotations of an account: what its user may do, and how long a token may live at most."""
ENDS = "trainyard.dev/console-token-ends"
"""Annotation of what a token is bound to: when the token ends, ISO 8601."""
MANAGED = {"app.kubernetes.io/managed-by": "trainyard"}
DEFAULT_HOURS = 8
"""Where an account does not say how long its tokens may live."""
MOST_HOURS = 24
"""Of dashboard_token_hours: no token lives longer."""
LETTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class Login:
    """A token that was made, and is in its file.

    :param name: of the Secret that it is bound to.
    :param level: `viewer` or `operator`.
    :param ends: as the API server says.
    """

    user: str
    name: str
    level: str
    ends: datetime
    file: Path


def make(api: Api, user: str, hours: float | None, folder: Path, now: datetime) -> Login:
    """Make a token of a user and write it to a file that its owner alone reads.

    :param hours: that it is valid; None for as many as the site allows.
    :param folder: for the file, `console-USER`; made where it is not there.
    :raises TrainyardError: no such user, too long, or the file cannot be written; nothing is left of the token then.
    """
    account = _account(api, user)
    notes = account["metadata"].get("annotations") or {}
    most = number(notes.get(HOURS), 0, MOST_HOURS) or DEFAULT_HOURS
    wanted = most if hours is None else hours
    if not 0 < wanted <= most:
        raise TrainyardError(
            f"A token of {user} may live for {most:g} hours, not for {wanted:g}.",
            remedy="dashboard_token_hours of the site says how long, 24 at most; site.yml lays it down.",
        )
    _sweep(api, user, now)
    secret = _bound(api, user, now + timedelta(hours=wanted))
    name = secret["metadata"]["name"]
    try:
        token, ends = _token(api, user, secret, wanted)
        _note(api, secret, ends)
        file = _write(folder, f"console-{user}", token)
    except BaseException:
        # Ctrl-C, too. A process that is killed leaves a Secret with its end, which the next login sweeps away.
        with suppress(TrainyardError):
            api.delete("v1", "Secret", name, NAMESPACE)
        raise
    return Login(user, name, str(notes.get(LEVEL, "?")), ends, file)


def _account(api: Api, user: str) -> Object:
    there = {
        each["metadata"]["labels"][USER]: each for each in api.list("v1", "ServiceAccount", NAMESPACE, labels=USER)
    }
    if user not in there:
        known = ", ".join(sorted(there))
        raise TrainyardError(
            f"The console has no user {user}.",
            remedy=(f"It has {known}; " if known else "It has none; ") + "dashboard_users of the site lists them.",
        )
    return there[user]


def _bound(api: Api, user: str, ends: datetime) -> Object:
    """The Secret that a token is bound to; it holds nothing, and has its end before the token exists."""
    name = f"token-{user}-{''.join(secrets.choice(LETTERS) for _ in range(5))}"
    meta = {"name": name, "namespace": NAMESPACE, "labels": {**MANAGED, TOKEN: user}, "annotations": _ends(ends)}
    return api.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})


def _ends(ends: datetime) -> dict[str, str]:
    return {ENDS: ends.astimezone(UTC).isoformat()}


def _token(api: Api, user: str, secret: Object, hours: float) -> tuple[str, datetime]:
    meta = secret["metadata"]
    bound = {"apiVersion": "v1", "kind": "Secret", "name": meta["name"], "uid": meta["uid"]}
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": round(hours * 3600), "boundObjectRef": bound},
    }
    path = f"{api.path('v1', 'ServiceAccount', NAMESPACE, f'user-{user}')}/token"
    status = json.loads(api.call("POST", path, body=body, what=f"a token of {user}"))["status"]
    return str(status["token"]), datetime.fromisoformat(status["expirationTimestamp"])


def _note(api: Api, secret: Object, ends: datetime) -> None:
    """Correct the end of what a token is bound to: the API server may have shortened it."""
    meta = secret["metadata"]
    path = api.path("v1", "Secret", NAMESPACE, meta["name"])
    change = {"metadata": {"annotations": _ends(ends)}}
    api.call("PATCH", path, body=change, content_type="application/merge-patch+json", what=f"Secret {meta['name']}")


def _sweep(api: Api, user: str, now: datetime) -> None:
    """Delete what the user's tokens were bound to that have ended."""
    for each in api.list("v1", "Secret", NAMESPACE, labels=f"{TOKEN}={user}"):
        if _ended(each, now):
            api.delete("v1", "Secret", each["metadata"]["name"], NAMESPACE)


def _ended(secret: Object, now: datetime) -> bool:
    ends = moment(at(secret, "metadata", "annotations", ENDS))
    if ends is None:
        # A login that was killed has left it before the end was noted first.
        made = moment(at(secret, "metadata", "creationTimestamp"))
        ends = made + timedelta(hours=MOST_HOURS) if made else None
    return ends is not None and ends < now


def _write(folder: Path, name: str, token: str) -> Path:
    """The file with the token. What was there before is replaced whole, and never readable for others."""
    path = folder / name
    fresh = folder / f".{name}.{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(f"{token}\n")
        fresh.replace(path)
    except OSError as error:
        raise TrainyardError(
            f"The token cannot be written to {path}: {error.strerror}.", remedy="Choose another workloads_token_dir."
        ) from error
    return path


@dataclass(frozen=True)
class Reach:
    """How browsers reach the console.

    :param address: of its pages; empty where only a port-forward leads there.
    :param ports: of the Service: those of the pages, and of TensorBoard.
    """

    address: str
    ports: tuple[int, int]


def reach(api: Api) -> Reach:
    """How the console of the site is reached.

    :raises TrainyardError: there is none, or it does not run.
    """
    service: Any = api.get("v1", "Service", "console", NAMESPACE)
    if service is None:
        raise TrainyardError("The site has no console.", remedy="The role dashboard makes one: run site.yml.")
    ports = {each["name"]: each for each in service["spec"]["ports"]}
    pages, boards = ports["https"], ports["tensorboard"]
    if service["spec"].get("type") != "NodePort":
        return Reach("", (int(pages["port"]), int(boards["port"])))
    pods = api.list("v1", "Pod", NAMESPACE, labels="app.kubernetes.io/name=console")
    where = [str(pod["status"]["hostIP"]) for pod in pods if (pod.get("status") or {}).get("hostIP")]
    if not where:
        raise KubeError("The console has no pod on a node.", status=503, remedy="kubectl get pods -n trainyard-console")
    host = f"[{where[0]}]" if ":" in where[0] else where[0]
    return Reach(f"https://{host}:{pages['nodePort']}/", (int(pages["nodePort"]), int(boards["nodePort"])))
