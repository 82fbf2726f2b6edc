"""Configure each desired apt repository once: use the owner's existing entry, or set it aside and write ours.

If two entries of a repository differ in `Signed-By`, apt reads no source. Then all apt programs of the host fail.

Parts: the entries of apt's source files; the fingerprints of keys; the decision about the desired repositories. Source
files are one-line `.list` files and deb822 `.sources` files (sources.list(5)). The code here computes the fingerprints
in an apt key file, because a minimal host has no program for that.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from ..core.files import write
from ..core.plan import Plan, Step
from .config_files import MARKER, File, HostFiles
from .ownership import aside_of
from .packages import source_files

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


PUBLIC_KEY = 6
"""Tag of a primary key's packet (RFC 9580, section 5)."""

ARMOR = re.compile(rb"-----BEGIN PGP PUBLIC KEY BLOCK-----(.*?)-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL)


def fingerprints(content: bytes) -> list[str]:
    """Return the fingerprints of the primary keys in a key file, in upper case; empty if it is not a key file.

    :param content: the file's bytes, armored or not.
    """
    try:
        blocks = [_unarmored(body) for body in ARMOR.findall(content)] or [content]
        return [_fingerprint(body) for block in blocks for tag, body in _packets(block) if tag == PUBLIC_KEY]
    except (ValueError, IndexError):
        return []


def _unarmored(body: bytes) -> bytes:
    """Return the packets of an armored block: the data after the headers and the empty line, without the checksum."""
    lines = [line.strip() for line in body.strip(b" \t").splitlines()[1:]]
    text = lines[lines.index(b"") + 1 :] if b"" in lines else lines
    return base64.b64decode(b"".join(line for line in text if not line.startswith(b"=")), validate=True)


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and body of each packet.

    :raises ValueError: this is not a sequence of packets, or a length is invalid for a key.
    """
    place = 0
    while place < len(data):
        head, place = data[place], place + 1
        if not head & 0x80:
            raise ValueError("not a packet")
        if head & 0x40:
            tag, (size, place) = head & 0x3F, _new_length(data, place)
        else:
            tag, width = head >> 2 & 0x0F, 1 << (head & 3)
            if width == 8:
                raise ValueError("a packet of indeterminate length")
            size, place = int.from_bytes(data[place : place + width], "big"), place + width
        if place + size > len(data):
            raise ValueError("a truncated packet")
        yield tag, data[place : place + size]
        place += size


def _new_length(data: bytes, place: int) -> tuple[int, int]:
    """Return the length of a packet in the newer format, and the offset of its body (RFC 9580, section 4.2.1)."""
    first = data[place]
    if first < 192:
        return first, place + 1
    if first < 224:
        return (first - 192 << 8) + data[place + 1] + 192, place + 2
    if first < 255:
        raise ValueError("a packet of partial length")
    return int.from_bytes(data[place + 1 : place + 5], "big"), place + 5


def _fingerprint(body: bytes) -> str:
    """Return the fingerprint of a key (RFC 9580, section 5.5.4).

    :raises ValueError: the key has a version that apt does not use.
    """
    if body[0] == 4:
        # The format prescribes SHA-1. Trust in the key comes from the lock file, which contains its fingerprint.
        return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest().upper()
    if body[0] == 6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise ValueError("a key of an unsupported version")


FOLDER = "/etc/apt/sources.list.d/"
HARMLESS = frozenset({"signed-by", "architectures", "languages", "enabled", "x-repolib-name"})
"""Options that a usable entry may have. Others could disable a check, or conflict with an entry without them."""


@dataclass(frozen=True)
class Settled:
    """The decision about the desired repositories and the host's own entries.

    :param files: the desired files that must be written.
    :param rests: source file of the host -> its text without our repositories; empty if it contains nothing else.
    """

    files: Sequence[File]
    rests: Mapping[str, str]

    def plan(self) -> Plan:
        """Plan to keep each old file as `NAME.disabled`, and to write back its other repositories."""
        asides = {path: aside_of(path) for path in self.rests}
        steps = [
            Step(_said(path, asides[path], rest), partial(_put, path, asides[path], rest))
            for path, rest in self.rests.items()
        ]
        after = {
            path: f"{'shortened' if rest else 'removed'}; the old file is kept as {asides[path]}"
            for path, rest in self.rests.items()
        }
        return Plan(steps, dict.fromkeys(asides, "contains a desired repository"), after)


def settle(files: Sequence[File], paths: Iterable[str] | None = None) -> Settled:
    """Compare the desired repositories with the entries of the host's owner; changes nothing.

    The owner's entries replace a desired file if they have all of its repositories, trust exactly the same keys, and
    disable no check. Otherwise all entries of these repositories must be set aside.

    :param files: desired files; those below FOLDER are repositories, with their keys embedded.
    :param paths: source files of the host; our own files are skipped.
    """
    wanted = {file.path for file in files}
    texts = {path: _text(path) for path in (source_files() if paths is None else paths) if path not in wanted}
    texts = {path: text for path, text in texts.items() if MARKER not in text}
    there = [(path, entry) for path, text in texts.items() for entry in entries(path, text)]
    kept: list[File] = []
    aside: set[tuple[str, str]] = set()
    for file in files:
        ours = entries(file.path, file.content) if file.path.startswith(FOLDER) else []
        repositories = {each for entry in ours for each in entry.repositories()}
        same = [entry for _, entry in there if entry.repositories() & repositories]
        if same and all(_serves(entry, same) for entry in ours):
            continue
        kept.append(file)
        aside |= repositories
    rests = {}
    for path, text in texts.items():
        gone = [entry for owner, entry in there if owner == path and entry.repositories() & aside]
        if gone:
            rest = without(path, text, gone, aside)
            rests[path] = rest if entries(path, rest) else ""
    return Settled(kept, rests)


def plan_once(wanted: HostFiles) -> Plan:
    """Plan the desired files, so that the host has each of their repositories only once.

    The host's own entries are changed first. In between, apt lacks a source but still works.
    """
    settled = settle(wanted.files)
    wanted.files = settled.files
    first, then = settled.plan(), wanted.plan()
    wanted.changed_paths = sorted({*settled.rests, *wanted.changed_paths})
    states = ({**first.before, **(then.before or {})}, {**first.after, **(then.after or {})})
    return Plan([*first.steps, *then.steps], *states)


def _serves(wanted: Entry, same: Sequence[Entry]) -> bool:
    """Return whether the owner's entries provide the same as a desired one, and nothing that it would refuse."""
    keys = _keys(wanted)
    if not keys or any(set(entry.options) - HARMLESS or _keys(entry) != keys for entry in same):
        return False
    # apt treats different spellings of the same keys as a conflict.
    if len({entry.options.get("signed-by") for entry in same}) > 1:
        return False
    return all(
        any(_has(entry, uri, name, wanted.components) for entry in same)
        for uri in wanted.uris
        for name in wanted.suites
    )


def _has(entry: Entry, uri: str, name: str, components: frozenset[str]) -> bool:
    """Return whether an entry provides a repository's packages for this architecture, over the same scheme."""
    own = architecture()
    architectures = entry.options.get("architectures", own).replace(",", " ").split()
    schemes = {each.partition(":")[0].lower() for each in entry.uris}
    return (
        "deb" in entry.types
        and (address(uri), suite(name)) in entry.repositories()
        and schemes == {uri.partition(":")[0].lower()}
        and components <= entry.components
        and own in architectures
    )


def _keys(entry: Entry) -> list[str]:
    """Return the fingerprints of the keys that an entry trusts; empty if they are not in files, or are unreadable."""
    value = entry.options.get("signed-by", "")
    if "BEGIN PGP" in value:
        return sorted(fingerprints("\n".join("" if line == "." else line for line in value.splitlines()).encode()))
    found: list[str] = []
    for path in value.replace(",", " ").split():
        if not path.startswith("/"):
            return []
        try:
            with open(path, "rb") as stream:
                found += fingerprints(stream.read())
        except OSError:
            return []
    return sorted(found)


def _said(path: str, aside: str, rest: str) -> str:
    return f"Copy {path} to {aside}, and remove our repositories" if rest else f"Rename {path} to {aside}"


def _put(path: str, aside: str, rest: str) -> None:
    if not rest:
        os.rename(path, aside)
        return
    there = os.stat(path)
    mode = stat.S_IMODE(there.st_mode)
    write(aside, _text(path), mode, there.st_uid, there.st_gid)
    write(path, rest, mode)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()
