"""apt with its own sources and state, independent of this machine's packages and preferences."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from .build_program import run

ARCHITECTURE = "amd64"
OPTIONS = {
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferences": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
    "APT::Architecture": ARCHITECTURE,
    "APT::Architectures": ARCHITECTURE,
    "APT::Install-Recommends": "false",
    "APT::Sandbox::User": "root",
    "APT::Update::Error-Mode": "any",
    "Acquire::Languages": "none",
    "Acquire::Retries": "3",
    "Acquire::https::Timeout": "30",
}


_PROXIES = {"https_proxy": "https", "no_proxy": "no"}
"""Variables that apt reads -> names in `getproxies`. As an option, other users would see a password."""


class PrivateApt:
    """A private instance of apt. The constructor reads the indexes.

    :param root: an empty folder.
    :param sources: lines of a sources.list, each with the key that signs its index.
    :param is_strict: also ignore this machine's apt settings, which might accept unsigned or outdated indexes.
    :raises CommandError: an index is missing, is not signed by that key, or is not currently valid.
    """

    def __init__(self, root: Path, sources: Sequence[str], *, is_strict: bool) -> None:
        for folder in ("lists/partial", "cache/archives/partial"):
            (root / folder).mkdir(parents=True)
        (root / "status").touch()
        (root / "sources.list").write_text("\n".join(sources) + "\n", encoding="utf-8")
        options: dict[str, object] = {
            **OPTIONS,
            "Dir::Etc::sourcelist": root / "sources.list",
            "Dir::State::lists": root / "lists",
            "Dir::State::status": root / "status",
            "Dir::Cache": root / "cache",
        }
        self._environment = {"LC_ALL": "C"}
        if is_strict:
            (root / "apt.conf").write_text('Dir::Etc::parts "/dev/null"; Dir::Etc::main "/dev/null";', encoding="ascii")
            self._environment["APT_CONFIG"] = str(root / "apt.conf")
            # Use the same CA and proxy as other downloads; apt reads no CA, and only these names.
            options["Acquire::https::CAInfo"] = os.environ.get("SSL_CERT_FILE")
            proxies = urllib.request.getproxies()
            self._environment |= {name: proxies[key] for name, key in _PROXIES.items() if key in proxies}
        self._options = [f"--option={name}={value}" for name, value in options.items() if value]
        self.archives = root / "cache" / "archives"
        self("apt-get", "update", timeout=300)

    def __call__(self, program: str, *arguments: str, timeout: float = 60, ok: Sequence[int] = (0,)) -> str:
        """Run apt-get or apt-cache and return its output.

        :param timeout: seconds.
        :param ok: exit statuses that are not an error.
        """
        argv = [program, "--quiet", *self._options, *arguments]
        return run(argv, timeout=timeout, ok=ok, env=self._environment).stdout
