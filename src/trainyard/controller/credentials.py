"""Credentials of a service (systemd.exec(5)): encrypted if the host supports it, and readable only by root."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..core.command import run
from ..core.errors import CommandError
from ..core.plan import Plan, Step

TIMEOUT = 60.0
SUFFIX = ".encrypted"


@dataclass(frozen=True)
class Credentials:
    """The wanted credentials.

    :param folder: of the credential files.
    :param texts: name -> text; other credentials are removed.
    :param encrypts: whether the host can encrypt.
    """

    folder: Path
    texts: Mapping[str, str]
    encrypts: bool

    def path(self, name: str) -> Path:
        return self.folder / (f"{name}{SUFFIX}" if self.encrypts else name)


Crypt = Callable[[str, str, str], str]
"""Verb (encrypt or decrypt), name and text -> text."""


def systemd_creds(verb: str, name: str, text: str) -> str:
    """Encrypt or decrypt a text with systemd-creds, and return the result. The text is passed on standard input.

    :raises CommandError: the host does not support it, or the text was not encrypted for this name on this host.
    """
    argv = ["systemd-creds", verb, f"--name={name}", "-", "-"]
    return run(argv, timeout=TIMEOUT, stdin=text.encode()).stdout


def can_encrypt(crypt: Crypt = systemd_creds) -> bool:
    """Return whether this host can decrypt its own encrypted texts."""
    try:
        return crypt("decrypt", "probe", crypt("encrypt", "probe", "probe")) == "probe"
    except CommandError:
        return False


def make_plan(wanted: Credentials, crypt: Crypt = systemd_creds) -> Plan:
    """Return the plan to keep exactly the wanted credentials. The plan contains no secret text."""
    before = {path.name: _state(wanted, path, crypt) for path in _present(wanted)}
    after = {wanted.path(name).name: "as wanted" for name in wanted.texts}
    steps = []
    for name, text in wanted.texts.items():
        if before.get(wanted.path(name).name) != "as wanted":
            steps.append(Step(f"Write the credential {name}", partial(_write, wanted, name, text, crypt)))
    for stale in sorted(before.keys() - after.keys()):
        steps.append(Step(f"Remove the credential {stale}", (wanted.folder / stale).unlink))
    return Plan(steps, before, after)


def _present(wanted: Credentials) -> list[Path]:
    return sorted(wanted.folder.iterdir()) if wanted.folder.is_dir() else []


def _state(wanted: Credentials, path: Path, crypt: Crypt) -> str:
    name = path.name.removesuffix(SUFFIX)
    if name not in wanted.texts or path != wanted.path(name):
        return "not wanted"
    if path.stat().st_mode & 0o077:
        return "readable by others"
    text = path.read_text(encoding="utf-8")
    try:
        found = crypt("decrypt", name, text) if wanted.encrypts else text
    except CommandError:
        return "encrypted for another host"
    return "as wanted" if found == wanted.texts[name] else "different"


def _write(wanted: Credentials, name: str, text: str, crypt: Crypt) -> None:
    content = crypt("encrypt", name, text) if wanted.encrypts else text
    wanted.folder.mkdir(parents=True, exist_ok=True)
    wanted.folder.chmod(0o700)
    # Created with a private mode, and renamed when complete.
    descriptor, temporary = tempfile.mkstemp(dir=wanted.folder)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, wanted.path(name))
