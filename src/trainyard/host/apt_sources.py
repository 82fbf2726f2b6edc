"""Configure each desired apt repository once: use the owner's existing entry, or set it aside and write ours.

If two entries of a repository differ in `Signed-By`, all apt programs of the host fail, because they read no source.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..core.files import write
from ..core.plan import Plan, Step
from . import apt_entries
from .apt_entries import Entry, entries
from .apt_index import source_files
from .config_files import MARKER, File, HostFiles
from .openpgp import fingerprints
from .patterns import aside_of

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
            rest = apt_entries.without(path, text, gone, aside)
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
    own = apt_entries.architecture()
    architectures = entry.options.get("architectures", own).replace(",", " ").split()
    schemes = {each.partition(":")[0].lower() for each in entry.uris}
    return (
        "deb" in entry.types
        and (apt_entries.address(uri), apt_entries.suite(name)) in entry.repositories()
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
