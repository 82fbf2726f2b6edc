"""containerd's drop-in files: those of strangers, and what they change of the settings that are ours."""

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
    """The strangers' files, and each setting of ours that is another one with them.

    Without any there is nothing to ask containerd for: what is ours is written anew by its role.
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
        # Its last line is the error; those before may be warnings.
        said = f"cannot be read with {culprit}: {error.message.splitlines()[-1]}"
        yield Finding("containerd configuration", said, "valid")
        return
    # Later files win, with containerd as here.
    ours = {
        name: value for path, text in texts.items() if path not in strangers for name, value in settings(text).items()
    }
    yield from changed_settings(effective, ours)


def changed_settings(effective: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[Finding]:
    """Our settings that are in force with another value; what containerd does not show is passed over, and so is the
    version of the form, which it raises by itself."""
    for name, value in ours.items():
        if "." in name and name in effective and effective[name] != value:
            yield Finding(f"containerd {name}", effective[name], value)


def settings(text: str) -> dict[str, str]:
    """Name with its table -> value as it is written, for tables and plain values; quotation marks are made alike.

    A reader of TOML is in Python from 3.11 on, and hosts may have 3.10.
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
