"""Entries of apt's source files: one-line `.list` files and deb822 `.sources` files (sources.list(5))."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

ONE_LINE = re.compile(r"\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)([^#]*)")
NAMES = {"arch": "architectures", "lang": "languages", "target": "targets"}
"""Options of the one-line format whose name differs from the deb822 field."""

OFF = frozenset({"no", "false", "without", "off", "disable", "0"})
"""Values of `Enabled` that make apt skip a stanza."""

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Kernel's name of an architecture -> dpkg's name, which replaces `$(ARCH)`."""

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Entry:
    """One line, or one stanza.

    :param lines: index of its first line in the file, and of the line after its last.
    :param types: `deb`, `deb-src` or both.
    :param options: deb822 names in lower case -> values, without types, addresses, suites and components.
    """

    lines: tuple[int, int]
    types: frozenset[str]
    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: frozenset[str]
    options: Mapping[str, str]

    def repositories(self) -> set[tuple[str, str]]:
        """Return address and suite of each repository, normalised by `address` and `suite`."""
        return {(address(uri), suite(name)) for uri in self.uris for name in self.suites}


def architecture() -> str:
    """Return dpkg's name of this host's architecture."""
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def address(uri: str) -> str:
    """Normalise an address, without its scheme: http and https lead to the same repository."""
    try:
        parts = urlsplit(uri.replace("$(ARCH)", architecture()))
        port = "" if parts.port in (None, PORTS.get(parts.scheme.lower())) else f":{parts.port}"
    except ValueError:
        return uri
    return f"//{(parts.hostname or '').lower()}{port}{parts.path.rstrip('/')}/"


def suite(name: str) -> str:
    """Normalise a suite, or the path in its place."""
    name = name.replace("$(ARCH)", architecture())
    return f"/{name.removeprefix('.').strip('/')}" if name.endswith("/") else name


def entries(path: str, text: str) -> list[Entry]:
    """Return the active entries of a source file.

    :param path: path of the file; its extension determines the format.
    """
    lines = text.splitlines()
    found = _stanzas(lines) if path.endswith(".sources") else _one_lines(lines)
    return [entry for entry in found if entry.options.get("enabled", "yes").lower() not in OFF]


def without(path: str, text: str, gone: Iterable[Entry], repositories: set[tuple[str, str]]) -> str:
    """Return the text without some repositories of some of its entries.

    A stanza that also contains other repositories becomes one stanza for each address that keeps a suite.
    """
    lines = text.splitlines(keepends=True)
    for entry in sorted(gone, key=lambda entry: entry.lines, reverse=True):
        first, end = entry.lines
        kept: list[str] = []
        for uri in entry.uris if path.endswith(".sources") else ():
            suites = [name for name in entry.suites if (address(uri), suite(name)) not in repositories]
            if suites:
                kept += [*_changed(lines[first:end], {"uris": uri, "suites": " ".join(suites)}), "\n"]
        lines[first:end] = kept
    return "".join(lines)


def _one_lines(lines: Sequence[str]) -> Iterator[Entry]:
    for number, line in enumerate(lines):
        if found := ONE_LINE.match(line):
            kind, given, uri, name, components = found.groups()
            pairs = (word.partition("=") for word in (given or "").split())
            options = {NAMES.get(key.lower(), key.lower()): value for key, _, value in pairs}
            span = (number, number + 1)
            yield Entry(span, frozenset({kind}), (uri,), (name,), frozenset(components.split()), options)


def _stanzas(lines: Sequence[str]) -> Iterator[Entry]:
    first = 0
    for end in [*(number for number, line in enumerate(lines) if not line.strip()), len(lines)]:
        fields = _fields(lines[first:end])
        if fields:
            types, uris, suites, components = (
                fields.pop(name, "").split() for name in ("types", "uris", "suites", "components")
            )
            yield Entry((first, end), frozenset(types), tuple(uris), tuple(suites), frozenset(components), fields)
        first = end + 1


def _fields(lines: Iterable[str]) -> dict[str, str]:
    """Return the fields of a stanza, with names in lower case."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t"):
            fields[name] = f"{fields.get(name, '')}\n{line.strip()}"
        else:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def _changed(lines: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Return the lines of a stanza with new values of some fields."""
    changed: list[str] = []
    skipping = False
    for line in lines:
        if line[:1] not in (" ", "\t", "#"):
            name = line.partition(":")[0].strip()
            skipping = name.lower() in values
            changed.append(f"{name}: {values[name.lower()]}\n" if skipping else line)
        elif not skipping or line.startswith("#"):
            changed.append(line if line.endswith("\n") else f"{line}\n")
    return changed
