"""Packages from vendors' signed apt repositories, whose indexes apt itself fetches and checks.

It works in a folder of its own with one source and one key, so nothing of this machine's configuration has a say: the
key signs `Release`, which has the hash of `Packages`, which has the hash of the package.
"""

from __future__ import annotations

import os
import re
import tempfile
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from ...core.errors import CommandError, TrainyardError
from ..build.deb import ARCHITECTURE
from ..origin import Apt
from ..program import run
from . import http as fetch
from . import keys

INDEX_TIMEOUT = 300
"""Seconds for one repository's index."""
_FOLDERS = (
    "etc/apt/apt.conf.d",
    "etc/apt/preferences.d",
    "var/lib/apt/lists/partial",
    "var/cache/apt/archives/partial",
)
SETTINGS = f"""
Dir::State::status "/dev/null";
APT::Architecture "{ARCHITECTURE}";
APT::Architectures {{ "{ARCHITECTURE}"; }};
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::https::Timeout "{fetch.SILENCE_TIMEOUT}";
"""


@dataclass
class Archive:
    """Reads indexes once, however many packages of the same repository are asked for.

    :param project: the repository's root, for keys that lie there.
    """

    project: Path
    _folders: dict[tuple[str, ...], tempfile.TemporaryDirectory[str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def fetch(self, origin: Apt, out: Path, partial: Path) -> dict[str, str]:
        """Download one package into a folder and return the facts `deb`, `url` and `sha256`."""
        stanza = self.stanza(origin)
        vouched = stanza["SHA256"].lower()
        if origin.sha256 and origin.sha256 != vouched:
            raise fetch.mismatch(
                f"{origin.package} {origin.version} in the index of {origin.base}", origin.sha256, vouched
            )
        url = f"{origin.base}{stanza['Filename'].removeprefix('./')}"
        version = origin.version.rpartition(":")[2]
        name = f"{origin.package}_{version}_{ARCHITECTURE}.deb"
        fetch.download(url.replace("~", "%7E"), out / name, vouched, partial=partial / vouched)
        return {"deb": name, "url": url, "sha256": vouched}

    def stanza(self, origin: Apt) -> dict[str, str]:
        """`Filename` and `SHA256` of a package in the signed index.

        :raises TrainyardError: the index has no good signature, or not that package.
        """
        with self._lock:
            index = (origin.release, origin.component, origin.key, origin.signed_by)
            if index not in self._folders:
                self._folders[index] = self._updated(origin)
            folder = self._folders[index].name
            text = _apt(folder, "apt-cache", "show", f"{origin.package}={origin.version}", ok=(0, 100))
            found = dict(re.findall(r"^(Filename|SHA256): (\S+)$", text, re.MULTILINE))
            if len(found) < 2:
                rows = _apt(folder, "apt-cache", "madison", origin.package).splitlines()
                raise TrainyardError(
                    f"{origin.base} has no {origin.package} {origin.version} for {ARCHITECTURE}.",
                    remedy=f"It has: {', '.join(row.split()[2] for row in rows[:8]) or 'no version of it'}.",
                )
        return found

    def _updated(self, origin: Apt) -> tempfile.TemporaryDirectory[str]:
        """A folder in which apt has read the origin's index, and believed it."""
        folder = tempfile.TemporaryDirectory(prefix="trainyard-apt-")
        root = Path(folder.name)
        for name in _FOLDERS:
            (root / name).mkdir(parents=True)
        settings = [f'Dir "{root}/";', SETTINGS]
        if authorities := os.environ.get("SSL_CERT_FILE"):
            settings.append(f'Acquire::https::CAInfo "{authorities}";')
        if proxy := urllib.request.getproxies().get("https"):
            settings.append(f'Acquire::https::Proxy "{proxy}";')
        (root / "apt.conf").write_text("\n".join(settings), encoding="utf-8")
        (root / "key.asc").write_text(keys.only(self._key(origin), origin.signed_by), encoding="ascii")
        source = ["Types: deb", f"URIs: {origin.base}", f"Suites: {origin.suite}", f"Signed-By: {root}/key.asc"]
        source += [f"Components: {origin.component}"] if origin.component else []
        (root / "etc/apt/sources.list.d").mkdir()
        (root / "etc/apt/sources.list.d/vendor.sources").write_text("\n".join(source) + "\n", encoding="utf-8")
        try:
            _apt(folder.name, "apt-get", "-qq", "update")
        except CommandError as error:
            raise TrainyardError(
                f"apt refuses the index of {origin.release}, which the key {origin.signed_by} has to sign: "
                f"{error.message.partition(': ')[2]}",
                remedy="Do not use it before the cause is found: the server, something on the way to it, or this "
                "machine's clock. If the vendor has announced another key, put its fingerprint into the lock.",
            ) from error
        return folder

    def _key(self, origin: Apt) -> bytes:
        if origin.key.startswith("project:"):
            return (self.project / origin.key.removeprefix("project:")).read_bytes()
        return fetch.read(origin.key)


def _apt(folder: str, *argv: str, ok: tuple[int, ...] = (0,)) -> str:
    environment = {"APT_CONFIG": f"{folder}/apt.conf", "LC_ALL": "C"}
    return run(argv, timeout=INDEX_TIMEOUT, env=environment, ok=ok).stdout
