"""Shared code of the kubeadm modules: the host's files, bounded runs of kubeadm, and the progress record.

The record holds the progress of this project's own init or control plane join on a host: `started` before kubeadm runs,
`complete` after it succeeded. Only a host that is `started` and not `complete` may be reset without confirmation.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from ..core import files
from ..core.command import run
from ..core.errors import TrainyardError, WaitError
from ..core.plan import Change, Step
from ..core.waiter import wait_until
from .node_api import SECRETS_DIR

State = TypeVar("State")

STARTED = "started"
COMPLETE = "complete"
STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


ARGUMENTS: dict[str, dict[str, Any]] = {
    "cri_socket": {"type": "str", "default": "unix:///run/containerd/containerd.sock"},
    "etcd_data_dir": {"type": "path", "default": "/var/lib/etcd"},
}
"""Arguments of init, join and reset; `plugins/doc_fragments/kubeadm.py` documents them."""
PREFLIGHT: dict[str, dict[str, Any]] = {
    "ignore_preflight_errors": {"type": "list", "elements": "str", "default": []},
    "resolv_conf": {"type": "str", "default": ""},
}
"""Arguments of init and join."""


@dataclass(frozen=True)
class Host:
    """The locations of the files of Kubernetes and this project on a host.

    :param etc: kubeadm's directory; `etcd`: the etcd data directory; `state`: this project's record.
    :param kubelet_config: the kubelet's configuration, which kubeadm writes before it starts the kubelet.
    """

    etc: str = "/etc/kubernetes"
    etcd: str = "/var/lib/etcd"
    state: str = "/var/lib/trainyard/kubeadm"
    kubelet_config: str = "/var/lib/kubelet/config.yaml"

    def file(self, name: str) -> str:
        return os.path.join(self.etc, name)

    def has(self, name: str) -> bool:
        return os.path.exists(self.file(name))

    def read(self, name: str) -> str:
        """Return the text of a file under `etc`; empty if it does not exist."""
        try:
            with open(self.file(name), encoding="utf-8") as stream:
                return stream.read()
        except FileNotFoundError:
            return ""

    def present(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if self.has(name))

    def static_pods(self) -> tuple[str, ...]:
        return tuple(name for name in STATIC_PODS if self.has(f"manifests/{name}.yaml"))

    def has_etcd_data(self) -> bool:
        return os.path.isdir(os.path.join(self.etcd, "member"))

    def has_kubelet_config(self) -> bool:
        return os.path.exists(self.kubelet_config)

    def kubelet_config_is_open(self) -> bool:
        """Return whether users other than its owner may read the kubelet's configuration (CIS 4.1.9)."""
        return self.has_kubelet_config() and bool(os.stat(self.kubelet_config).st_mode & 0o077)

    def protect_kubelet_config(self) -> None:
        os.chmod(self.kubelet_config, 0o600)

    def marker(self, verb: str) -> str:
        """Return the progress of `init` or `join`: `STARTED`, `COMPLETE` or empty.

        If both are recorded, it was started again, so `STARTED` wins.
        """
        for state in (STARTED, COMPLETE):
            if os.path.exists(os.path.join(self.state, f"{verb}.{state}")):
                return state
        return ""

    def set_marker(self, verb: str, state: str) -> None:
        """Record progress on disk, before kubeadm's first write: a power cut must not leave files without a record."""
        self.store(f"{verb}.{state}", "")
        other = STARTED if state == COMPLETE else COMPLETE
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.state, f"{verb}.{other}"))

    def stored(self, name: str) -> str:
        try:
            with open(os.path.join(self.state, name), encoding="utf-8") as stream:
                return stream.read()
        except FileNotFoundError:
            return ""

    def store(self, name: str, text: str) -> str:
        """Write a file of the record atomically, readable only by its owner, and return its path."""
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        path = os.path.join(self.state, name)
        files.write(path, text, 0o600)
        return path


def control_plane_part(host: Host) -> str:
    """Return a host's part: `made` the cluster, `joined` its control plane, or `none`, also if a join is incomplete."""
    if not host.has("admin.conf") or host.marker("join") == STARTED:
        return "none"
    return "made" if host.stored("init.yaml") else "joined"


def refuse_all(errors: Sequence[str]) -> None:
    """Refuse to ignore all preflight errors, because that hides the important one."""
    if any(error.lower() == "all" for error in errors):
        raise TrainyardError(
            "kubernetes_ignore_preflight_errors contains 'all'.",
            remedy="List the preflight checks whose errors may be ignored, for example SystemVerification.",
        )


def installed() -> bool:
    return shutil.which("kubeadm") is not None and shutil.which("kubectl") is not None


def require_installed() -> None:
    if not installed():
        raise TrainyardError(
            "kubeadm or kubectl is not installed.", remedy="Run the role kubernetes on this host first."
        )


def kubeadm(arguments: Sequence[str], *, timeout: float, ignore: Sequence[str] = ()) -> str:
    """Run kubeadm and return its output.

    :param timeout: seconds; on some broken hosts, kubeadm would wait for ever.
    :param ignore: preflight checks whose errors become warnings.
    """
    flags = [f"--ignore-preflight-errors={','.join(ignore)}"] if ignore else []
    return run(["kubeadm", *arguments, *flags], timeout=timeout).stdout


SEPARATOR = "\n---\n"


def as_text(documents: Sequence[Mapping[str, Any]]) -> str:
    return SEPARATOR.join(json.dumps(document, sort_keys=True) for document in documents) + "\n"


def from_text(text: str) -> list[dict[str, Any]]:
    """Parse the output of `as_text`; empty for other formats, such as records of earlier releases."""
    try:
        return [json.loads(part) for part in text.split(SEPARATOR)] if text else []
    except ValueError:
        return []


@contextmanager
def configuration(*documents: Mapping[str, Any]) -> Iterator[str]:
    """Provide a validated kubeadm configuration as a temporary file that only root can read.

    :param documents: its documents, written as JSON, which is valid YAML: hosts then need no YAML parser.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=SECRETS_DIR, encoding="utf-8") as stream:
        stream.write(as_text(documents))
        stream.flush()
        run(["kubeadm", "config", "validate", "--config", stream.name], timeout=30)
        yield stream.name


PATCHES = "patches"
"""Folder in the record with kubeadm's patches for this node."""
KUBELET_PATCH = "kubeletconfiguration+merge.json"
"""File name of a patch: target and type (kubeadm's option --patches)."""


def with_patches(host: Host, documents: Sequence[Mapping[str, Any]], resolv_conf: str) -> list[Mapping[str, Any]]:
    """Return the documents with a patch that gives this node's kubelet its own resolver file.

    Otherwise kubeadm gives all nodes the file of the first control plane host, which others need not have. Then no pod
    starts there (kubernetes/kubeadm 3034).

    :param resolv_conf: path of the resolver file.
    """
    os.makedirs(os.path.join(host.state, PATCHES), mode=0o700, exist_ok=True)
    host.store(f"{PATCHES}/{KUBELET_PATCH}", json.dumps({"resolvConf": resolv_conf}) + "\n")
    patches = {"patches": {"directory": os.path.join(host.state, PATCHES)}}
    return [
        {**each, **patches} if each.get("kind") in ("InitConfiguration", "JoinConfiguration") else each
        for each in documents
    ]


MEMBERSHIP = "membership of the cluster"
"""Subject of the difference of a host that will become a node."""


def marker_step(host: Host, verb: str, state: str) -> Step:
    return Step(f"Record that kubeadm {verb} on this host is {state}", lambda: host.set_marker(verb, state))


def protect_step(host: Host, *, follows: bool = False) -> Step:
    """Return the step that narrows the mode of the kubelet's configuration, which kubeadm writes world-readable.

    :param follows: kubeadm writes the file in the same plan.
    """
    change = Change(f"mode of {host.kubelet_config}", "readable by others", "private to its owner", follows=follows)
    return Step("Restrict the kubelet's configuration to its owner", host.protect_kubelet_config, [change])


def wait_while(observe: Callable[[], State], pending: Callable[[State], bool], timeout: float) -> State:
    """Observe until the state is no longer pending or the timeout is reached; return the last state."""
    last: list[State] = []

    def look() -> State:
        last[:] = [observe()]
        return last[0]

    try:
        return wait_until(look, lambda state: not pending(state), what="the API", timeout=timeout, interval=2.0)
    except WaitError:
        return last[0]


def wait_for_other_runs(timeout: float) -> None:
    """Wait until no kubeadm runs on this host. If the controller was killed, its kubeadm keeps running for a while."""
    wait_until(
        lambda: sorted(_processes("kubeadm")),
        lambda running: not running,
        what="another kubeadm on this host to end (the last state lists its process IDs)",
        timeout=timeout,
    )


def _processes(name: str) -> Iterator[int]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                with open(f"/proc/{entry.name}/comm", encoding="utf-8") as stream:
                    if stream.read().strip() == name:
                        yield int(entry.name)
            except OSError:
                continue
