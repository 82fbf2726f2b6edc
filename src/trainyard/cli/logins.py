"""Logins of the console: tokens of its users. Each token is bound to a Secret, whose deletion revokes the token."""

from __future__ import annotations

import json
import os
import secrets
import string
from collections.abc import Callable
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
"""Labels of a user's account, and of the Secret that a user's token is bound to."""
LEVEL, HOURS = "trainyard.dev/console-level", "trainyard.dev/console-token-hours"
"""Annotations of an account: the rights of its user, and the maximum lifetime of a token in hours."""
ENDS = "trainyard.dev/console-token-ends"
"""Annotation of the Secret that a token is bound to: the end of the token, ISO 8601."""
MANAGED = {"app.kubernetes.io/managed-by": "trainyard"}
DEFAULT_HOURS = 8
"""Lifetime of tokens of an account without the annotation."""
MOST_HOURS = 24
"""Maximum of dashboard_token_hours, and of the lifetime of a token."""
LETTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class Login:
    """A new token in its file.

    :param name: of the Secret that it is bound to.
    :param level: `viewer` or `operator`.
    :param ends: end of the token, from the API server.
    """

    user: str
    name: str
    level: str
    ends: datetime
    file: Path

    def __str__(self) -> str:
        """Return the lines that the commands print, without the token."""
        ends = f"{self.ends.astimezone():%Y-%m-%d %H:%M:%S %Z}"
        return f"file   {self.file}\nlevel  {self.level}\nends   {ends}\nlogin  {self.name}"


def make(
    api: Api,
    user: str,
    hours: float | None,
    folder: Path,
    now: datetime,
    *,
    kind: str = "console",
    render: Callable[[str], str] = str,
) -> Login:
    """Create a token of a user and write it to a file that only its owner may read.

    :param hours: validity; None for the site's maximum.
    :param folder: for the file `KIND-USER`; created if it is missing.
    :param render: returns the text of the file for a token.
    :raises TrainyardError: the user is unknown, the validity is too long, or the file cannot be written. Nothing is
        left of the token then.
    """
    account = _account(api, user)
    notes = account["metadata"].get("annotations") or {}
    most = number(notes.get(HOURS), 0, MOST_HOURS) or DEFAULT_HOURS
    wanted = most if hours is None else hours
    if not 0 < wanted <= most:
        raise TrainyardError(
            f"A token of {user} may be valid for {most:g} hours, not for {wanted:g}.",
            remedy="Request fewer hours, or set dashboard_token_hours (24 at most) and run site.yml.",
        )
    _sweep(api, user, now)
    secret = _bound(api, user, now + timedelta(hours=wanted))
    name = secret["metadata"]["name"]
    try:
        token, ends = _token(api, user, secret, wanted)
        _note(api, secret, ends)
        file = _write(folder, f"{kind}-{user}", render(token))
    except BaseException:
        # Also after Ctrl-C. A killed process leaves a Secret with its end, which the next login deletes.
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
            remedy=(f"Use one of {known}, or add" if known else "Add")
            + " the user to dashboard_users and run site.yml.",
        )
    return there[user]


def _bound(api: Api, user: str, ends: datetime) -> Object:
    """Create the empty Secret that a token is bound to. It has the end of the token before the token exists."""
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
    """Correct the end in a token's Secret, as the API server may have shortened it."""
    meta = secret["metadata"]
    path = api.path("v1", "Secret", NAMESPACE, meta["name"])
    change = {"metadata": {"annotations": _ends(ends)}}
    api.call("PATCH", path, body=change, content_type="application/merge-patch+json", what=f"Secret {meta['name']}")


def _sweep(api: Api, user: str, now: datetime) -> None:
    """Delete the Secrets of the user's ended tokens."""
    for each in api.list("v1", "Secret", NAMESPACE, labels=f"{TOKEN}={user}"):
        if _ended(each, now):
            api.delete("v1", "Secret", each["metadata"]["name"], NAMESPACE)


def _ended(secret: Object, now: datetime) -> bool:
    ends = moment(at(secret, "metadata", "annotations", ENDS))
    if ends is None:
        # Left by a killed login of an old version, which did not set the end first.
        made = moment(at(secret, "metadata", "creationTimestamp"))
        ends = made + timedelta(hours=MOST_HOURS) if made else None
    return ends is not None and ends < now


def _write(folder: Path, name: str, text: str) -> Path:
    """Write the file with the token. It replaces an old file atomically, and other users can never read it."""
    path = folder / name
    fresh = folder / f".{name}.{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(f"{text}\n")
        fresh.replace(path)
    except OSError as error:
        raise TrainyardError(
            f"The token cannot be written to {path}: {error.strerror}.", remedy="Choose another workloads_token_dir."
        ) from error
    return path


@dataclass(frozen=True)
class Reach:
    """The way for browsers to the console.

    :param address: of its pages; empty if they need a port-forward.
    :param ports: of the Service: those of the pages, and of TensorBoard.
    """

    address: str
    ports: tuple[int, int]


def reach(api: Api) -> Reach:
    """Return how browsers reach the console of the site.

    :raises TrainyardError: there is none, or it does not run.
    """
    service: Any = api.get("v1", "Service", "console", NAMESPACE)
    if service is None:
        raise TrainyardError("The site has no console.", remedy="Run site.yml, whose role dashboard creates it.")
    ports = {each["name"]: each for each in service["spec"]["ports"]}
    pages, boards = ports["https"], ports["tensorboard"]
    if service["spec"].get("type") != "NodePort":
        return Reach("", (int(pages["port"]), int(boards["port"])))
    pods = api.list("v1", "Pod", NAMESPACE, labels="app.kubernetes.io/name=console")
    where = [str(pod["status"]["hostIP"]) for pod in pods if (pod.get("status") or {}).get("hostIP")]
    if not where:
        raise KubeError(
            "The console has no pod on a node.", status=503, remedy="Run `kubectl get pods -n trainyard-console`."
        )
    host = f"[{where[0]}]" if ":" in where[0] else where[0]
    return Reach(f"https://{host}:{pages['nodePort']}/", (int(pages["nodePort"]), int(boards["nodePort"])))
