"""Proxies to the internet: the site's, for programs that fetch; those that the files of a host name; none for the API.

A module receives the site's proxy as an option. An environment of the task would be part of the command line, which
sudo logs and other users see.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .untrusted import line

NAMES = frozenset({"http_proxy", "https_proxy", "no_proxy", "all_proxy"})
"""Variables of an environment, in lower case. Programs differ in the case that they read."""

PROXY: dict[str, dict[str, Any]] = {"proxy": {"type": "dict", "default": {}, "no_log": True}}
"""Argument of modules that fetch; `plugins/doc_fragments/proxy.py` documents it."""


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without proxies, for programs that call the API server.

    kubeadm also copies the proxies of its environment into static pods.
    """
    return {name: value for name, value in environment.items() if name.lower() not in NAMES}


def use(given: Mapping[str, str]) -> None:
    """Replace the proxies in the environment of this process, and so of the programs that it starts.

    :param given: result of the lookup `site_proxy`; empty leaves the environment unchanged.
    """
    if not given:
        return
    kept = without(os.environ)
    for name in set(os.environ) - kept.keys():
        del os.environ[name]
    for name, value in given.items():
        os.environ[name.upper()] = os.environ[name.lower()] = str(value)


LARGEST = 1 << 20
"""Characters of a configuration file that are read."""
LONGEST = 200
"""Characters of a shown proxy."""

_VARIABLE = re.compile(r"""(?:^|[\s"'=])(?:https?|all)_proxy=["']?([^\s"']+)""", re.IGNORECASE)
_OF_APT = re.compile(r'(?:^|[\s:{])Proxy\s+"([^"]+)"', re.IGNORECASE)
"""`Acquire::http::Proxy "URL"`, and `Proxy "URL"` in braces (apt.conf(5)); not `Proxy::HOST "URL"`, for one host."""
_PLACES = (
    ("etc/environment", _VARIABLE),
    ("etc/systemd/system.conf", _VARIABLE),
    ("etc/systemd/system.conf.d/*.conf", _VARIABLE),
    ("etc/apt/apt.conf", _OF_APT),
    ("etc/apt/apt.conf.d/*", _OF_APT),
)
"""Files with proxies for all programs of a host -> the pattern of a proxy in a line."""
_NONE = frozenset({"direct", "false"})
"""Values with which apt uses no proxy."""
_SCHEME = re.compile(r"(?:https?|socks[45]?[ah]?)://", re.IGNORECASE)


def shown(url: str) -> str:
    """Return a proxy as text for the user: scheme, host and port, without a login."""
    scheme = found[0] if (found := _SCHEME.match(url)) else ""
    # A password that is not encoded may contain any of these characters, so the last @ ends the login.
    _, at, host = url[len(scheme) :].rpartition("@")
    return line(f"{scheme}{'***@' if at else ''}{re.split('[/?#]', host)[0]}", LONGEST)


def of_environment(environment: Mapping[str, str]) -> str:
    """Return the first proxy of an environment as text for the user; empty if it names none."""
    found = (environment[name] for name in sorted(environment) if name.lower() in NAMES - {"no_proxy"})
    return next((shown(value) for value in found if value), "")


def of_files(root: str = "/") -> dict[str, str]:
    """Return path -> proxy, as text for the user, of each file that sets a proxy for all programs of a host.

    Files of this project are left out.
    """
    found = {}
    for pattern, proxy in _PLACES:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            if "trainyard" in os.path.basename(path):
                continue
            lines = (each for each in _read(path).splitlines() if not each.lstrip().startswith(("#", "//")))
            urls = [url for each in lines for url in proxy.findall(each) if url.lower() not in _NONE]
            if urls:
                found["/" + os.path.relpath(path, root)] = shown(urls[0])
    return found


def _read(path: str) -> str:
    if not os.path.isfile(path):
        return ""
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read(LARGEST)
    return ""
