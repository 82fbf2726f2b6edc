"""Find unmanaged files that change what runs on a node: files of units, and containerd drop-ins.

A file of a unit is unmanaged if it is neither a package's unedited file nor this project's. For containerd, the
findings also name our settings that unmanaged drop-ins change.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping

from ..core.command import run
from ..core.errors import CommandError
from ..core.finding import Finding
from .ownership import MARKER, read
from .units import properties_of
from .validation import Tree, culprit_of

INFO = "/var/lib/dpkg/info"
QUERY_TIMEOUT = 20.0


def unit_findings(unit: str, package: str) -> Iterator[Finding]:
    """Yield files of a unit that are neither as its package installed them nor this project's."""
    seen = properties_of(unit, ("LoadState", "FragmentPath", "DropInPaths"))
    if seen.get("LoadState") != "loaded":
        return
    paths = [seen.get("FragmentPath", ""), *seen.get("DropInPaths", "").split()]
    # Folders such as service.d apply to all units and belong to the distribution.
    own = [path for path in paths if path and (path.endswith(f"/{unit}") or f"/{unit}.d/" in path)]
    hashes = installed_hashes(package)
    for path in own:
        if finding := judged(path, _read(path), hashes, _is_packaged):
            yield finding


def judged(path: str, content: bytes, hashes: Mapping[str, str], is_packaged: Callable[[str], bool]) -> Finding | None:
    """Return the finding for a file of a unit; None if the file is correct.

    :param hashes: path -> MD5 of the files that the unit's package installed.
    :param is_packaged: returns whether any package owns a file; called only for files that are not in `hashes`.
    """
    known = hashes.get(os.path.realpath(path))
    if known is not None:
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return None if found == known else Finding(path, "edited", "as in its package")
    if MARKER.encode() in content or is_packaged(path):
        return None
    return Finding(path, "there", "not of a package or the site")


def flag_findings(path: str, name: str) -> Iterator[Finding]:
    """Yield flags that a user has set in a file of environment variables, which the package leaves empty."""
    if value := variable(_read(path).decode(errors="replace"), name):
        yield Finding(f"{name} in {path}", value, "no flags")


def variable(text: str, name: str) -> str:
    """Return the value of a variable; empty if it is not set."""
    found = re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)
    return str(found[-1]).strip().strip("\"'").strip() if found else ""


def installed_hashes(package: str) -> dict[str, str]:
    """Return real path -> MD5 of the unit files that a package installed, from dpkg; empty if dpkg has none."""
    lines = _read(f"{INFO}/{package}.md5sums").decode(errors="replace").splitlines()
    pairs = (line.split(None, 1) for line in lines if " " in line)
    return {os.path.realpath(f"/{path}"): digest for digest, path in pairs if "/systemd/" in path}


def _is_packaged(path: str) -> bool:
    """Return whether a package owns the file, by its current path or by the one before /lib became a link."""
    real = os.path.realpath(path)
    names = sorted({path, real, real.removeprefix("/usr")})
    return bool(run(["dpkg-query", "--search", *names], timeout=QUERY_TIMEOUT, ok=(0, 1)).stdout.strip())


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


DROP_INS = "/etc/containerd/conf.d/*.toml"
TREE = Tree("/etc/containerd/config.toml", DROP_INS, ("containerd", "--config", "%s", "config", "dump"))
DUMP = ("containerd", "config", "dump")
TIMEOUT = 30.0
SECTION = re.compile(r"^\s*\[([^\[\]]+)\]\s*$")
SETTING = re.compile(r"^\s*([\w.'\"-]+)\s*=\s*(.+?)\s*$")


def containerd_findings(pattern: str = DROP_INS) -> Iterator[Finding]:
    """Yield unmanaged drop-in files, and each of our settings that they override.

    Without such files containerd is not queried, because the role rewrites our own files.
    """
    texts = {path: _read_config(path) for path in sorted(glob.glob(pattern))}
    strangers = [path for path, text in texts.items() if MARKER not in text]
    for path in strangers:
        yield Finding(path, "there", "not the site's")
    if not strangers:
        return
    try:
        effective = settings(run(DUMP, timeout=TIMEOUT).stdout)
    except CommandError as error:
        found = {path: each.text for path in (TREE.root, *texts) if (each := read(path))}
        culprit = culprit_of(TREE, found, TIMEOUT) or "its files together"
        # The last line is the error; earlier lines may be warnings.
        said = f"cannot be read with {culprit}: {error.message.splitlines()[-1]}"
        yield Finding("containerd configuration", said, "valid")
        return
    # Later files win, here as in containerd.
    ours = {
        name: value for path, text in texts.items() if path not in strangers for name, value in settings(text).items()
    }
    yield from changed_settings(effective, ours)


def changed_settings(effective: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[Finding]:
    """Yield our settings whose effective value differs.

    Settings that containerd does not show are skipped, as is the format version, which containerd raises by itself.
    """
    for name, value in ours.items():
        if "." in name and name in effective and effective[name] != value:
            yield Finding(f"containerd {name}", effective[name], value)


def settings(text: str) -> dict[str, str]:
    """Parse tables and plain values: name with its table -> value as written, with normalised quotation marks.

    Python has a TOML parser only from 3.11 on, and hosts may have 3.10.
    """
    found: dict[str, str] = {}
    table = ""
    for line in text.splitlines():
        if section := SECTION.match(line):
            table = section[1].strip().replace('"', "'")
        elif (setting := SETTING.match(line)) and not line.lstrip().startswith("#"):
            value = setting[2].replace("'", '"')
            found[f"{table}.{setting[1]}" if table else setting[1]] = re.sub(r"\s*,\s*", ", ", value)
    return found


def _read_config(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()
