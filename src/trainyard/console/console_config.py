"""The configuration of the console, read from its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import TrainyardError

IDLE_SECONDS = 1800.0


@dataclass(frozen=True)
class Config:
    """The console's settings.

    :param api: URL of the API server, `https://host:port`.
    :param api_ca: file with the CA certificates for the API server.
    :param tls: folder with tls.crt and tls.key, which may be replaced while the console runs.
    :param port: to listen on for pages; 0 for any free port.
    :param tensorboard_port: to listen on for TensorBoards, which need their own origin.
    :param public_port: under which browsers reach `port` if it differs, such as a node port.
    :param public_tensorboard_port: the same for `tensorboard_port`.
    :param address: of this machine to listen on; None for all.
    :param versions: component -> version, for the page About.
    :param site: name shown on pages.
    :param idle: seconds without a request after which a login ends.
    """

    api: str
    api_ca: Path
    tls: Path
    port: int = 8443
    tensorboard_port: int = 8444
    public_port: int = 8443
    public_tensorboard_port: int = 8444
    address: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    site: str = "trainyard"
    idle: float = IDLE_SECONDS


def from_environment(environment: Mapping[str, str]) -> Config:
    """Read the variables `CONSOLE_*`.

    :raises TrainyardError: variables are missing or invalid; the message names all of them.
    """
    faults: list[str] = []
    api = environment.get("CONSOLE_API", "")
    if not api.startswith("https://"):
        faults.append("CONSOLE_API must be https://HOST:PORT")
    ca, tls = (Path(environment.get(name, "")) for name in ("CONSOLE_API_CA", "CONSOLE_TLS"))
    if not ca.is_file():
        faults.append(f"CONSOLE_API_CA is no file: {str(ca)!r}")
    faults += [f"CONSOLE_TLS has no {name}" for name in ("tls.crt", "tls.key") if not (tls / name).is_file()]
    port = _number(environment, "CONSOLE_PORT", 8443, faults)
    tensorboard = _number(environment, "CONSOLE_TENSORBOARD_PORT", 8444, faults)
    idle = _number(environment, "CONSOLE_IDLE_SECONDS", int(IDLE_SECONDS), faults)
    public = _number(environment, "CONSOLE_PUBLIC_PORT", port, faults)
    public_tensorboard = _number(environment, "CONSOLE_PUBLIC_TENSORBOARD_PORT", tensorboard, faults)
    versions = _versions(environment.get("CONSOLE_VERSIONS", ""), faults)
    if faults:
        raise TrainyardError(f"The console cannot start: {'; '.join(faults)}.", remedy="See roles/dashboard.")
    return Config(
        api=api.rstrip("/"),
        api_ca=ca,
        tls=tls,
        port=port,
        tensorboard_port=tensorboard,
        public_port=public,
        public_tensorboard_port=public_tensorboard,
        versions=versions,
        site=environment.get("CONSOLE_SITE") or "trainyard",
        idle=float(idle),
    )


def _number(environment: Mapping[str, str], name: str, default: int, faults: list[str]) -> int:
    text = environment.get(name) or str(default)
    if not text.isdecimal() or not 0 < int(text) < 65536:
        faults.append(f"{name} is {text!r}, but must be a number from 1 to 65535")
        return default
    return int(text)


def _versions(path: str, faults: list[str]) -> dict[str, str]:
    if not path:
        return {}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        return {str(name): str(version) for name, version in found.items()}
    except (OSError, ValueError, AttributeError) as error:
        faults.append(f"CONSOLE_VERSIONS is {path!r}, which cannot be read: {error}")
        return {}
