"""Find containerd drop-in files that this project does not manage, and our settings that they change."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping

from ..core.command import run
from ..core.errors import CommandError
from ..core.finding import Finding
from .ownership import MARKER
from .present import read
from .validation import Tree, culprit_of

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
    texts = {path: _read(path) for path in sorted(glob.glob(pattern))}
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


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()
