"""Compare a host's static pods with kubeadm's output as text, so that hosts need no YAML parser."""

from __future__ import annotations

import difflib
import glob
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.command import run
from ..core.errors import CommandError
from ..core.finding import Finding
from ..core.new_clusters import lines_as_made
from . import program as adm
from .api import SECRETS_DIR

PHASES = (["control-plane", "all"], ["etcd", "local"])
OF_THE_JOIN = re.compile(r"\s+- --initial-cluster(-state)?=.*")
"""Flags of etcd that describe the members at its first start, and have no effect afterwards."""

TIMEOUT = 60.0
MEASURE = 120


def rendered(documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the static pod manifests that kubeadm would write, by pod name. Only a temporary folder is written.

    :param documents: the kubeadm configuration of this host.
    :raises CommandError: kubeadm refuses the configuration.
    """
    with adm.configuration(*documents) as path, tempfile.TemporaryDirectory(dir=SECRETS_DIR) as folder:
        for phase in PHASES:
            command = ["kubeadm", "init", "phase", *phase, "--config", path, "--dry-run"]
            run(command, timeout=TIMEOUT, env={"KUBEADM_INIT_DRYRUN_DIR": folder})
        return {name: _read(os.path.join(folder, f"{name}.yaml")) for name in adm.STATIC_PODS}


def unknown_pods(host: adm.Host) -> Iterator[Finding]:
    """Yield static pod files that kubeadm did not write."""
    for path in sorted(glob.glob(host.file("manifests/*"))):
        if os.path.basename(path) not in {f"{name}.yaml" for name in adm.STATIC_PODS}:
            yield Finding(path, "there", "not kubeadm's")


def changed_pods(host: adm.Host, documents: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield control plane static pods that differ from kubeadm's output; nothing before a host has any."""
    if not host.static_pods() or not adm.installed() or adm.STARTED in (host.marker("init"), host.marker("join")):
        return
    try:
        wanted = rendered(documents)
    except CommandError as error:
        yield Finding(host.file("manifests"), f"cannot be compared: {error.message[:MEASURE]}", "as kubeadm writes it")
        return
    for name, text in wanted.items():
        path = f"manifests/{name}.yaml"
        if not host.has(path):
            yield Finding(host.file(path), "missing", "as kubeadm writes it")
        elif difference := changed_lines(there := host.read(path), lines_as_made(text, there)):
            yield Finding(host.file(path), *difference)


def changed_lines(there: str, wanted: str) -> tuple[str, str] | None:
    """Return the differing lines of each side, truncated; None if there is no difference."""
    old, new = ([line for line in text.splitlines() if not OF_THE_JOIN.fullmatch(line)] for text in (there, wanted))
    if old == new:
        return None
    lines = [line for line in difflib.ndiff(old, new) if line[0] in "-+"]
    told = ["; ".join(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+"]
    return (_short(told[0]) or "lines are missing", _short(told[1]) or "without these lines")


def _short(text: str) -> str:
    return text if len(text) <= MEASURE else text[: MEASURE - 1] + "…"


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()
